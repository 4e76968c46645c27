"""Serve over stdio until the client closes it or a signal comes.

FastMCP leaves signals alone: SIGTERM would kill at once, without teardown, and SIGINT would leave
the process waiting for stdin (FastMCP facts 7.4). So the program is closed in a handler of ours,
and then left by `os._exit`, since the thread that reads stdin cannot be interrupted.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from opencode_mcp.app.runtime import open_runtime
from opencode_mcp.callers.server import build_server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opencode_mcp.settings import Settings

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: `docker stop` kills after 10 s
_CLOSE_S = 9.0


async def serve_stdio(settings: Settings, environ: Mapping[str, str]) -> None:
    """Serve one client over stdin and stdout. Returns when stdin ends.

    Raises a StoreError when the tracking database cannot be used.
    """
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(open_runtime(settings, environ))
        server = build_server(runtime)
        _close_on_signals(stack)
        await server.run_stdio_async(show_banner=False)


def _close_on_signals(stack: AsyncExitStack) -> None:
    loop = asyncio.get_running_loop()
    closing: set[asyncio.Task[None]] = set()

    def stop(number: signal.Signals) -> None:
        if closing:  # a second signal ends at once
            os._exit(128 + number)
        log.info("stopping", extra={"signal": number.name})
        closing.add(asyncio.ensure_future(_close_and_leave(stack)))

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)


async def _close_and_leave(stack: AsyncExitStack) -> None:
    try:
        async with asyncio.timeout(_CLOSE_S):
            await stack.aclose()
    except Exception:
        log.exception("closing failed")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)

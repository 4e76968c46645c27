"""Serve over stdio until the client closes it or a signal comes.

Both lead the same way out, and in time (`engine/closing.py`): whoever waits is answered, then the
turns of this process are parted with, then it exits with 0. FastMCP leaves signals alone, and at
the end of its input it drops what is under way (FastMCP facts 7.4): `app/pipes.py`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import TYPE_CHECKING

from opencode_mcp.app.exiting import Exit, leave
from opencode_mcp.app.pipes import Pipes
from opencode_mcp.app.runtime import open_runtime
from opencode_mcp.callers.server import build_server
from opencode_mcp.engine.closing import WRITTEN_BY_S
from opencode_mcp.log_events import Event, tell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opencode_mcp.settings import Settings

log = logging.getLogger(__name__)

#: the library is given so long to see the end of its input
_SEEN_S = 0.5


async def serve_stdio(settings: Settings, environ: Mapping[str, str]) -> None:
    """Serve one client over stdin and stdout, which belong to it from here on.

    Returns when it is time to exit, or does not return but exits. Raises a StoreError when the
    tracking database cannot be used.
    """
    leaving = _take_over()
    async with open_runtime(settings, environ, leaving.closing) as runtime:
        server = build_server(runtime)
        serving = asyncio.create_task(server.run_stdio_async(show_banner=False), name="stdio")
        asked = asyncio.create_task(leaving.closing.wait(), name="exit")
        await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)
        leaving.begin(refuse=False)
        await asyncio.wait({serving}, timeout=leaving.closing.left_s(WRITTEN_BY_S + _SEEN_S))
        asked.cancel()
    if not serving.done():  # a client that does not read: its thread cannot be interrupted
        tell(log, Event.CLIENT_DEAF)
        leave()
    serving.result()


def _take_over() -> Exit:
    """Take stdin, stdout and the signals. What else uses them meets nothing, and stderr."""
    loop = asyncio.get_running_loop()

    def stdin_ended() -> None:
        tell(log, Event.SERVER_STOPPING, why="stdin has ended")
        loop.call_soon_threadsafe(lambda: leaving.begin(refuse=False))

    pipes = Pipes(os.dup(0), os.dup(1), on_end=stdin_ended)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdin, sys.stdout = pipes.stdin, pipes.stdout
    leaving = Exit(on_begin=pipes.end)
    return leaving

"""Serve over stdio until the client closes it or a signal comes.

Both lead the same way out, and in time (`engine/closing.py`): whoever waits is answered, then the
turns of this process are parted with, then it exits with 0. FastMCP leaves signals alone, and at
the end of its input it drops what is under way (FastMCP facts 7.4): `app/pipes.py`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from opencode_mcp.app.pipes import Pipes
from opencode_mcp.app.runtime import open_runtime
from opencode_mcp.callers.server import build_server
from opencode_mcp.clock import Clock
from opencode_mcp.engine.closing import GONE_BY_S, WRITTEN_BY_S, Closing
from opencode_mcp.log_events import Event, tell

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from opencode_mcp.settings import Settings

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: the library is given so long to see the end of its input
_SEEN_S = 0.5


async def serve_stdio(settings: Settings, environ: Mapping[str, str]) -> None:
    """Serve one client over stdin and stdout, which belong to it from here on.

    Returns when it is time to exit, or does not return but exits. Raises a StoreError when the
    tracking database cannot be used.
    """
    leaving = _Exit()
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
        _leave()
    serving.result()


class _Exit:
    """How this process exits: asked by the end of stdin or by a signal, bounded in any case."""

    def __init__(self) -> None:
        """Take stdin, stdout and the signals. What else uses them meets nothing, and stderr."""
        self.closing = Closing(Clock())
        self._loop = asyncio.get_running_loop()
        self._pipes = Pipes(os.dup(0), os.dup(1), on_end=self._stdin_ended)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        sys.stdin, sys.stdout = self._pipes.stdin, self._pipes.stdout
        for number in _SIGNALS:
            self._loop.add_signal_handler(number, self._stop, number)

    def begin(self, *, refuse: bool) -> None:
        """Begin to exit; with `refuse`, take no new call."""
        if not self.closing.is_begun:
            # A thread of its own: whatever hangs then, the process goes.
            guard = threading.Timer(GONE_BY_S, _leave)
            guard.daemon = True
            guard.start()
        self.closing.begin(refuse=refuse)
        self._pipes.end()

    def _stdin_ended(self) -> None:
        tell(log, Event.SERVER_STOPPING, why="stdin has ended")
        self._loop.call_soon_threadsafe(lambda: self.begin(refuse=False))

    def _stop(self, number: signal.Signals) -> None:
        tell(log, Event.SERVER_STOPPING, why=number.name)
        for each in _SIGNALS:  # a second one ends at once, even if nothing else moves any more
            self._loop.remove_signal_handler(each)
            signal.signal(each, _end_at_once)
        self.begin(refuse=True)


def _end_at_once(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)


def _leave() -> None:
    sys.stderr.flush()
    os._exit(0)

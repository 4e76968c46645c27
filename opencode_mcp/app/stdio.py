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
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

from opencode_mcp.app.exiting import Exit, go
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
    source, sink = _take_streams()
    # only now: what a library prints while it is imported is not for the client either
    from opencode_mcp.app.pipes import Pipes  # noqa: PLC0415
    from opencode_mcp.app.runtime import open_runtime  # noqa: PLC0415
    from opencode_mcp.callers.server import build_server  # noqa: PLC0415

    loop = asyncio.get_running_loop()

    def stdin_ended() -> None:
        if pipes.is_unused:  # `docker run` without `-i` (case B33)
            tell(log, Event.NO_CLIENT)
        tell(log, Event.SERVER_STOPPING, why="stdin has ended")
        loop.call_soon_threadsafe(lambda: leaving.begin(refuse=False))

    for_others = sys.stdin, sys.stdout

    def streams_are_taken() -> None:
        sys.stdin, sys.stdout = for_others

    pipes = Pipes(source, sink, on_start=streams_are_taken, on_end=stdin_ended)
    sys.stdin = cast(TextIO, _Offer(sys.stdin, pipes.stdin.buffer))
    sys.stdout = cast(TextIO, _Offer(sys.stdout, pipes.stdout.buffer))
    leaving = Exit(on_begin=pipes.end)
    async with open_runtime(settings, environ, leaving.closing) as runtime:
        server = build_server(runtime)
        serving = asyncio.create_task(server.run_stdio_async(show_banner=False), name="stdio")
        await _until_left(serving, leaving)
    if not serving.done():  # a client that does not read: its thread cannot be interrupted
        tell(log, Event.CLIENT_DEAF)
        go()
    serving.result()


async def _until_left(serving: asyncio.Task[None], leaving: Exit) -> None:
    """Wait until the library has served all, or must have."""
    asked = asyncio.create_task(leaving.closing.wait(), name="exit")
    await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)
    leaving.begin(refuse=False)
    await asyncio.wait({serving}, timeout=leaving.closing.left_s(WRITTEN_BY_S + _SEEN_S))
    asked.cancel()


class _Offer:
    """A standard stream whose buffer is the client's, which the MCP library asks for.

    Whoever just prints does not reach the client.
    """

    def __init__(self, for_others: TextIO, buffer: BinaryIO) -> None:
        self.buffer = buffer
        self._for_others = for_others

    def __getattr__(self, name: str) -> object:
        return getattr(self._for_others, name)


def _take_streams() -> tuple[int, int]:
    """Return stdin and stdout. Who else uses their numbers meets nothing, and stderr."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink

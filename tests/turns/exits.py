"""A server of ours as a process, with a turn under way, and the ways to make it exit."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from typing import TYPE_CHECKING

from tests.real.support.raw_stdio import RawStdio
from tests.support.process_bridge import COMMAND
from tests.turns.reading import only_session, streaming

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests.support.bridges import Bridges
    from tests.twin import Twin

#: contract §4
WHOLE_S = 9.0
SIGNALS = {"term": signal.SIGTERM, "int": signal.SIGINT, "hup": signal.SIGHUP}
WAYS = [*SIGNALS, "eof"]
TERM = signal.SIGTERM
HANDSHAKE: list[Json] = [
    {
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
]


def call(identity: int, tool: str, **arguments: object) -> Json:
    """Return a tool call as a message."""
    return {
        "id": identity,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }


def lines_of(*messages: Json) -> bytes:
    """Return messages as they go over the wire, the last one without its line's end."""
    return b"\n".join(json.dumps({"jsonrpc": "2.0", **one}).encode() for one in messages)


def structured(message: Json) -> Json:
    """Return the structured half of a tool's answer."""
    found: Json = message["result"]["structuredContent"]
    return found


async def told(server: RawStdio, identity: int) -> Json:
    """Wait for the answer to a call; return its structured half."""
    return structured(await server.answer(identity))


@asynccontextmanager
async def serving(bridges: Bridges, folder: Path, **settings: str) -> AsyncIterator[RawStdio]:
    """Start one that is attached to the twin, and shake hands with it."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(RawStdio(bridges.attach_env(**settings), folder))
        await server.initialize()
        yield server


@asynccontextmanager
async def unread(
    bridges: Bridges, folder: Path, *messages: Json
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """Start one, say something to it and read nothing; give also the end that could be read."""
    readable, writable = os.pipe()
    with (folder / "unread.log").open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            str(COMMAND),
            env=bridges.attach_env(),
            cwd=folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=writable,
            stderr=errors,
        )
    os.close(writable)
    assert process.stdin is not None
    process.stdin.write(lines_of(*HANDSHAKE, *messages) + b"\n")
    try:
        yield process, readable
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        with suppress(OSError):
            os.close(readable)


async def endless_turn(server: RawStdio, twin: Twin, project: Path, identity: int = 1) -> str:
    """Begin a turn that a call watches; return its session once it streams."""
    server.call(identity, "opencode", prompt="HANG", cwd=str(project), wait_seconds=60)
    await streaming(twin)
    return only_session(twin)


async def leave(server: RawStdio, way: str) -> int:
    """Make it exit; return the exit code, or fail if it takes longer than is promised."""
    if way == "eof":
        assert server.process.stdin is not None
        server.process.stdin.close()
    else:
        server.process.send_signal(SIGNALS[way])
    return await server.exited(within_s=WHOLE_S)


def recorded(bridges: Bridges, column: str, table: str = "turns") -> list[object]:
    """Return one column of the tracking database."""
    uri = f"file:{bridges.database}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        rows = connection.execute(f"SELECT {column} FROM {table}").fetchall()  # noqa: S608 - ours
    return [row[0] for row in rows]

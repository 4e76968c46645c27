"""From spawn to `tools/list` answered over stdio, and the memory held then."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil

from bench.measure import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "0"},
    },
}
_INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


@dataclass(frozen=True, slots=True)
class Spawned:
    """One run: milliseconds until the tools were listed, and MiB resident then."""

    ms: float
    memory_mib: float


async def spawn(command: Sequence[str], environ: Mapping[str, str]) -> Spawned:
    """Start a server, ask it for its tools, measure, and close its stdin."""
    watch = Stopwatch()
    process = await asyncio.create_subprocess_exec(
        *command,
        env=dict(environ),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=2**22,
    )
    if process.stdin is None or process.stdout is None:
        message = "started without pipes"
        raise RuntimeError(message)
    try:
        process.stdin.write(_line(_INITIALIZE))
        await _answer(process.stdout, 1)
        process.stdin.write(_line(_INITIALIZED) + _line(_LIST))
        await _answer(process.stdout, 2)
        ms = watch.ms
        memory = psutil.Process(process.pid).memory_info().rss / 2**20
    finally:
        process.stdin.close()
        await process.wait()
    return Spawned(ms, memory)


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


async def _answer(stream: asyncio.StreamReader, request_id: int) -> None:
    while True:
        line = await stream.readline()
        if not line:
            message = "the server ended before it answered"
            raise RuntimeError(message)
        if json.loads(line).get("id") == request_id:
            return

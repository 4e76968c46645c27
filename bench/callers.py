"""Measure of issue 5: many callers at once list sessions over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import aiohttp

from bench.measure import Comparison, Stopwatch, alternate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

_CALLERS = 64
_CALLS_EACH = 5
_SESSIONS = 20
_PAIRS = int(os.environ.get("CALLER_PAIRS", "15"))
_UP_S = 30.0
_HEADERS = {"accept": "application/json, text/event-stream"}


async def listing(environ: Mapping[str, str], base: Path) -> Comparison:
    """List sessions with 64 callers in parallel: ours, and a bare tool with the same answer.

    Requests/s may be 0.8 of the bare tool's, so the time 1.25.
    """
    port, bare_port = _free_port(), _free_port()
    env = {**environ, "OPENCODE_MCP_TRANSPORT": "http", "OPENCODE_MCP_PORT": str(port)}
    env["OPENCODE_MCP_DATABASE"] = str(base / "callers.db")
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession(headers=_HEADERS))
        url = await stack.enter_async_context(_serve(http, ["-m", "opencode_mcp"], env, port))
        project = environ["OPENCODE_MCP_DEFAULT_CWD"]
        for _ in range(_SESSIONS):
            await _call(http, url, "opencode", {"prompt": "Say something short.", "cwd": project})
        answer = base / "answer.json"
        answer.write_text(json.dumps(await _call(http, url, "opencode-status", {})), "utf-8")
        command = ["-m", "bench.bare_http", str(answer), str(bare_port)]
        bare = await stack.enter_async_context(_serve(http, command, env, bare_port))
        return await alternate(
            f"{_CALLERS} callers list sessions over HTTP ÷ a bare tool",
            lambda: _storm(http, url),
            lambda: _storm(http, bare),
            times=_PAIRS,
            allowed=1.25,
        )


async def _storm(http: aiohttp.ClientSession, url: str) -> float:
    async def caller() -> None:
        for _ in range(_CALLS_EACH):
            await _call(http, url, "opencode-status", {})

    watch = Stopwatch()
    await asyncio.gather(*(caller() for _ in range(_CALLERS)))
    return watch.ms


async def _call(
    http: aiohttp.ClientSession, url: str, tool: str, arguments: Mapping[str, Any]
) -> Any:  # noqa: ANN401 - JSON
    params = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with http.post(url, json=body) as reply:
        text = await reply.text()
    data = next(line for line in text.splitlines() if line.startswith("data:"))
    return json.loads(data.removeprefix("data:"))["result"]["structuredContent"]


@asynccontextmanager
async def _serve(
    http: aiohttp.ClientSession, command: list[str], env: Mapping[str, str], port: int
) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(sys.executable, *command, env=dict(env))
    url = f"http://127.0.0.1:{port}/mcp"
    try:
        async with asyncio.timeout(_UP_S):
            while not await _answers(http, url):  # noqa: ASYNC110 - a process tells nobody
                await asyncio.sleep(0.05)
        yield url
    finally:
        process.terminate()
        await process.wait()


async def _answers(http: aiohttp.ClientSession, url: str) -> bool:
    with suppress(aiohttp.ClientConnectionError):
        async with http.get(url):
            return True
    return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])

"""Print the measures of the project as ratios (`make bench`). Not a test: nothing is asserted.

"By hand" is the same requests with one keep-alive aiohttp session (bench/by_hand.py), in turn with
ours in one run, on the same OpenCode and the same scripted model.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from rich.console import Console
from rich.table import Table

from bench.by_hand import ByHand
from bench.callers import listing
from bench.ends import full_database, many_ends, streaming_end
from bench.measure import Comparison, Stopwatch, alternate
from bench.outputs import answer_page
from bench.spawn import Spawned, spawn
from bench.turns import idle_to_answer, parallel_turns, token_cost
from opencode_mcp.cli.scripted_model import ScriptedModel
from tests.real.support.opencode_server import OpencodeServer
from tests.real.support.sandbox import Sandbox, write_project
from tests.support.bridges import bare_env

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_types import CallToolResult

_TIMES = int(os.environ.get("TIMES", "30"))
_OURS = [sys.executable, "-m", "opencode_mcp"]
_BARE = [sys.executable, "-m", "bench.bare_server"]
_PROMPT = "Say something short."


async def _turns_and_ends(
    server: OpencodeServer, project: Path, environ: Mapping[str, str]
) -> list[Comparison]:
    transport = StdioTransport(_OURS[0], _OURS[1:], env=dict(environ), keep_alive=False)
    hand = ByHand(server.url, server.password, str(project))
    async with Client(transport) as client, hand:
        return [
            *await _one_by_one(client, hand, project),
            await idle_to_answer(client, hand, project, _TIMES),
            *await answer_page(client, hand, project, _TIMES),
            await parallel_turns(client, hand, project),
            await streaming_end(client, hand, project, _TIMES),
            await many_ends(client, hand, project),
        ]


async def _one_by_one(
    client: Client[StdioTransport], hand: ByHand, project: Path
) -> list[Comparison]:
    """Measure short turns, then the ends of their sessions.

    Ours is the answer as it comes: FastMCP's client would make classes of our schema each time.
    """
    mine: list[str] = []
    theirs: list[str] = []

    async def our_turn() -> float:
        watch = Stopwatch()
        arguments = {"prompt": _PROMPT, "cwd": str(project)}
        answer = await client.call_tool_mcp("opencode", arguments)
        ms = watch.ms
        mine.append(str((answer.structured_content or {})["sessionId"]))
        return ms

    async def turn_by_hand() -> float:
        session_id, ms = await hand.turn(_PROMPT)
        theirs.append(session_id)
        return ms

    async def our_end() -> float:
        watch = Stopwatch()
        _check_ended(await client.call_tool_mcp("opencode-end", {"sessionId": mine.pop()}))
        return watch.ms

    async def end_by_hand() -> float:
        return await hand.end(theirs.pop())

    measures = (
        ("short turn through opencode ÷ by hand", our_turn, turn_by_hand, 1.05),
        ("opencode-end of an idle session ÷ by hand", our_end, end_by_hand, 1.15),
    )
    return [
        await alternate(name, ours, by_hand, times=_TIMES, allowed=allowed)
        for name, ours, by_hand, allowed in measures
    ]


def _check_ended(answer: CallToolResult) -> None:
    if (answer.structured_content or {})["status"] != "ended":
        message = f"not ended: {answer.structured_content}"
        raise RuntimeError(message)


async def _with_others(environ: Mapping[str, str], base: Path) -> list[Comparison]:
    """Measure what needs servers of ours with other settings."""
    async with AsyncExitStack() as stack:

        async def connect(more: Mapping[str, str]) -> tuple[Client[StdioTransport], int]:
            before = {child.pid for child in psutil.Process().children()}
            env = {**environ, **more}
            transport = StdioTransport(_OURS[0], _OURS[1:], env=env, keep_alive=False)
            client = await stack.enter_async_context(Client(transport))
            (pid,) = {child.pid for child in psutil.Process().children()} - before
            return client, pid

        tokens = await token_cost(connect, base)
        return tokens + await full_database(connect, _OURS, environ, base, _TIMES)


async def _spawns(environ: Mapping[str, str]) -> list[Comparison]:
    runs: dict[str, list[Spawned]] = {"ours": [], "bare": []}

    async def one(which: str, command: list[str]) -> float:
        run = await spawn(command, environ)
        runs[which].append(run)
        return run.ms

    ms = await alternate(
        "spawn to tools/list ÷ a bare FastMCP server",
        lambda: one("ours", _OURS),
        lambda: one("bare", _BARE),
        times=_TIMES,
        allowed=1.15,
    )
    memory = Comparison(
        "memory after tools/list ÷ a bare FastMCP server",
        [run.memory_mib for run in runs["ours"]],
        [run.memory_mib for run in runs["bare"]],
        allowed=1.25,
        unit="MiB",
    )
    return [ms, memory]


async def _measure() -> list[Comparison]:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        project = write_project(base / "project")
        async with ScriptedModel() as model:
            sandbox = Sandbox(base / "home", model.url)
            async with OpencodeServer(sandbox, write_project(base / "workdir")) as server:
                environ = {
                    **bare_env(sandbox.home),
                    "OPENCODE_MCP_SERVER_URL": server.url,
                    "OPENCODE_MCP_SERVER_PASSWORD": server.password,
                    "OPENCODE_MCP_DATABASE": str(base / "tracking.db"),
                    "OPENCODE_MCP_ALLOWED_ROOTS": str(base),
                    "OPENCODE_MCP_DEFAULT_CWD": str(project),
                    "OPENCODE_MCP_LOG_LEVEL": "warning",
                    "PYTHONPATH": str(Path.cwd()),
                }
                return [
                    *await _turns_and_ends(server, project, environ),
                    *await _with_others(environ, base),
                    await listing(environ, base),
                    *await _spawns(environ),
                ]


def _show(comparisons: list[Comparison]) -> None:
    table = Table(title=f"medians of {_TIMES} runs in turn")
    for heading in ("measure", "ours", "by hand", "ratio", "pair by pair", "allowed"):
        table.add_column(heading, justify="left" if heading == "measure" else "right")
    for one in comparisons:
        ours, hand = sorted(one.ours)[len(one.ours) // 2], sorted(one.by_hand)[len(one.ours) // 2]
        table.add_row(
            one.name,
            f"{ours:.1f} {one.unit}",
            f"{hand:.1f} {one.unit}",
            f"{one.ratio:.3f}",
            f"{one.pairwise:.3f}",
            f"{one.allowed:.2f}",
            style="" if one.ratio <= one.allowed else "bold red",
        )
    Console().print(table)


if __name__ == "__main__":
    _show(asyncio.run(_measure()))

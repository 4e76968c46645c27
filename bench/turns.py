"""Measures of issue 2: many turns at once, the CPU that a streamed token costs, idle to answer."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import aiohttp
import psutil

from bench.measure import Comparison, Stopwatch, alternate
from tests.support.polling import eventually
from tests.twin import Twin

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from fastmcp import Client

    from bench.by_hand import ByHand

PARALLEL = int(os.environ.get("PARALLEL", "100"))
#: one pair takes a minute or two
_PARALLEL_PAIRS = int(os.environ.get("PARALLEL_PAIRS", "3"))
_TOKENS = 20_000
_TOKENS_A_SECOND = 2_000
_PROMPT = "Say something short."


async def parallel_turns(client: Client[Any], hand: ByHand, project: Path) -> Comparison:
    """Run so many short turns at once, ours and by hand in turn; wall time of all."""

    async def ours() -> float:
        watch = Stopwatch()
        arguments = {"prompt": _PROMPT, "cwd": str(project), "wait-seconds": 600}
        answers = await asyncio.gather(
            *(client.call_tool_mcp("opencode", arguments) for _ in range(PARALLEL))
        )
        statuses = {(answer.structured_content or {})["status"] for answer in answers}
        if statuses != {"completed"}:
            message = f"not all completed: {statuses}"
            raise RuntimeError(message)
        return watch.ms

    return await alternate(
        f"{PARALLEL} parallel short turns ÷ by hand",
        ours,
        lambda: hand.turns(_PROMPT, PARALLEL),
        times=_PARALLEL_PAIRS,
        allowed=1.10,
        warm_up=0,
    )


async def idle_to_answer(
    client: Client[Any], hand: ByHand, project: Path, times: int
) -> Comparison:
    """From OpenCode's idle event, as this process hears it, to the answer: ours, and the reads."""
    heard = IdleEvents(hand)

    async def ours() -> float:
        turn = asyncio.create_task(
            client.call_tool_mcp("opencode", {"prompt": _PROMPT, "cwd": str(project)})
        )
        watch = await heard.next()
        await turn
        return watch.ms

    async def by_hand() -> float:
        session_id = await hand.prompt(_PROMPT)
        watch = await heard.next()
        await hand.read(session_id)
        return watch.ms

    async with heard:
        return await alternate(
            "idle event to our answer ÷ the reads by hand",
            ours,
            by_hand,
            times=times,
            allowed=1.3,
        )


class IdleEvents:
    """Tells when the newest turn's idle event was heard."""

    def __init__(self, hand: ByHand) -> None:
        self._hand = hand
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> None:
        self._lines = await self._stack.enter_async_context(self._hand.events())

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def next(self) -> Stopwatch:
        """Wait for the next first idle of a turn, and start a watch there."""
        async for line in self._lines:
            if b'"session.idle"' in line:
                return Stopwatch()
        message = "the event stream ended"
        raise RuntimeError(message)


async def token_cost(
    connect: Callable[[Mapping[str, str]], Awaitable[tuple[Client[Any], int]]], base: Path
) -> list[Comparison]:
    """Own CPU per streamed token, on the twin: of a turn of ours, and of sessions not ours."""
    project = base / "tokens"
    project.mkdir()
    async with Twin(project) as twin:
        environ = {
            "OPENCODE_MCP_SERVER_URL": twin.url,
            "OPENCODE_MCP_SERVER_PASSWORD": twin.password,
            "OPENCODE_MCP_DATABASE": str(base / "tokens.db"),
        }
        client, pid = await connect(environ)
        script = f"SLOW:{_TOKENS},{_TOKENS_A_SECOND}"
        arguments = {"prompt": script, "cwd": str(project), "wait-seconds": 600}
        await client.call_tool("opencode", {**arguments, "prompt": "SAY:warm"})
        mine = await _cpu_of(pid, client.call_tool("opencode", arguments))
        # a turn of ours keeps the stream open, and so does a watcher of it; the tokens are others'
        await client.call_tool("opencode", {**arguments, "prompt": "HANG", "wait-seconds": 0})
        foreign = await _cpu_of(pid, _prompt_elsewhere(twin, project, script))
    return [
        Comparison("own CPU per streamed token of a turn of ours", [mine], [30.0], 1.0, "µs"),
        Comparison("own CPU per streamed token of others", [foreign], [30.0], 1.0, "µs"),
    ]


async def _cpu_of(pid: int, work: Awaitable[object]) -> float:
    """Return the CPU that the process used while `work` went on, in µs per token."""
    process = psutil.Process(pid)
    before = process.cpu_times()
    await work
    after = process.cpu_times()
    used_s = after.user + after.system - before.user - before.system
    return used_s * 1_000_000 / _TOKENS


async def _prompt_elsewhere(twin: Twin, project: Path, script: str) -> None:
    headers = {"Authorization": aiohttp.encode_basic_auth(twin.username, twin.password)}
    async with aiohttp.ClientSession(twin.url, headers=headers) as http:
        query = {"directory": str(project)}
        async with http.post("/session", params=query, json={}) as answer:
            session_id = (await answer.json())["id"]
        body = {"parts": [{"type": "text", "text": script}]}
        async with http.post(f"/session/{session_id}/prompt_async", json=body):
            pass

    async def begun() -> bool:
        return session_id in twin.runs.running

    await eventually(begun, what="the turn of others runs")
    await twin.runs.settled(session_id)

"""Measures of issue 3: ends of streaming sessions, many at once, and a database that is full."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from bench.measure import Comparison, Stopwatch, alternate
from bench.spawn import spawn
from opencode_mcp.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from fastmcp import Client

    from bench.by_hand import ByHand

MANY = int(os.environ.get("ENDS", "100"))
_MANY_PAIRS = int(os.environ.get("PARALLEL_PAIRS", "3"))
#: a word a second: running, and next to no work for the machine
_STREAMING = "SLOW:600,1"
_FULL, _TOMBSTONES, _FEW = 10_000, 500, 100


async def streaming_end(client: Client[Any], hand: ByHand, project: Path, times: int) -> Comparison:
    """End one session whose turn streams: through the tool, and the same requests by hand."""

    async def ours() -> float:
        (session_id,) = await _begin_ours(client, project, 1)
        await hand.streaming([session_id])
        return await _end_ours(client, [session_id])

    async def by_hand() -> float:
        prompts = await hand.begin(_STREAMING, 1)
        await hand.streaming([one for one, _ in prompts])
        watch = Stopwatch()
        await hand.end_streaming(*prompts[0])
        return watch.ms

    return await alternate(
        "opencode-end of a streaming session ÷ by hand", ours, by_hand, times=times, allowed=1.15
    )


async def many_ends(client: Client[Any], hand: ByHand, project: Path) -> Comparison:
    """End so many sessions whose turns run, all at once; wall time of all."""

    async def ours() -> float:
        ids = await _begin_ours(client, project, MANY)
        await hand.streaming(ids)
        return await _end_ours(client, ids)

    async def by_hand() -> float:
        prompts = await hand.begin(_STREAMING, MANY)
        await hand.streaming([one for one, _ in prompts])
        watch = Stopwatch()
        await asyncio.gather(*(hand.end_streaming(*one) for one in prompts))
        return watch.ms

    return await alternate(
        f"{MANY} ends of running sessions at once ÷ by hand",
        ours,
        by_hand,
        times=_MANY_PAIRS,
        allowed=1.2,
        warm_up=0,
    )


async def _begin_ours(client: Client[Any], project: Path, count: int) -> list[str]:
    arguments = {"prompt": _STREAMING, "cwd": str(project), "wait-seconds": 0}
    answers = await asyncio.gather(
        *(client.call_tool_mcp("opencode", arguments) for _ in range(count))
    )
    return [str((answer.structured_content or {})["sessionId"]) for answer in answers]


async def _end_ours(client: Client[Any], ids: Sequence[str]) -> float:
    watch = Stopwatch()
    answers = await asyncio.gather(
        *(client.call_tool_mcp("opencode-end", {"sessionId": one}) for one in ids)
    )
    ms = watch.ms
    told = {(answer.structured_content or {})["status"] for answer in answers}
    if told != {"ended"}:
        message = f"not all ended: {told}"
        raise RuntimeError(message)
    return ms


async def full_database(
    connect: Callable[[Mapping[str, str]], Awaitable[tuple[Client[Any], int]]],
    command: Sequence[str],
    environ: Mapping[str, str],
    base: Path,
    times: int,
) -> list[Comparison]:
    """Start-up and a page of the list, with many tracked sessions and with few or none."""
    project = base / "project"
    paths = {count: base / f"{count}.db" for count in (0, _FEW, _FULL)}
    for count, path in paths.items():
        await _fill(path, environ["OPENCODE_MCP_SERVER_URL"], project, count)

    async def start(count: int) -> float:
        return (await spawn(command, {**environ, "OPENCODE_MCP_DATABASE": str(paths[count])})).ms

    full, _ = await connect({"OPENCODE_MCP_DATABASE": str(paths[_FULL])})
    few, _ = await connect({"OPENCODE_MCP_DATABASE": str(paths[_FEW])})
    return [
        await alternate(
            f"start with {_FULL} sessions tracked ÷ with none",
            lambda: start(_FULL),
            lambda: start(0),
            times=times,
            allowed=1.1,
        ),
        await alternate(
            f"a page of 100 sessions of {_FULL} ÷ of {_FEW}",
            lambda: _page(full, _FULL),
            lambda: _page(few, _FEW),
            times=times,
            allowed=1.2,
        ),
    ]


async def _page(client: Client[Any], total: int) -> float:
    watch = Stopwatch()
    answer = await client.call_tool_mcp("opencode-status", {"limit": 100})
    ms = watch.ms
    if (answer.structured_content or {})["total"] != total:
        message = f"not the list that was wanted: {answer.structured_content}"
        raise RuntimeError(message)
    return ms


async def _fill(path: Path, url: str, project: Path, count: int) -> None:
    """Make a database with so many tracked sessions, each with a finished turn."""
    async with Store.open(path) as store:
        instance = await store.attach_instance(url)
    moment = "2026-01-31T12:00:00.000000+00:00"
    numbers = range(count)
    with closing(sqlite3.connect(path)) as file, file:
        file.executemany(
            "INSERT INTO sessions (id, owner, instance_id, directory, phase, version, created_at,"
            " updated_at, title, turn_count) VALUES (?, 'local', ?, ?, 'active', 1, ?, ?, ?, 1)",
            [
                (f"ses_{n:026d}", instance.id, str(project), moment, moment, f"session {n}")
                for n in numbers
            ],
        )
        file.executemany(
            "INSERT INTO turns (session_id, number, message_id, submission, created_at,"
            " deadline_at, finished_at) VALUES (?, 1, ?, 'recorded', ?, ?, ?)",
            [(f"ses_{n:026d}", f"msg_{n:026d}", moment, moment, moment) for n in numbers],
        )
        file.executemany(
            "INSERT INTO tombstones (session_id, owner, action, ended_at, answer_json)"
            " VALUES (?, 'local', 'delete', strftime('%Y-%m-%dT%H:%M:%f000+00:00'), '{}')",
            [(f"ses_gone{n:022d}",) for n in range(_TOMBSTONES if count else 0)],
        )

"""How the process exits while OpenCode, the database or the client hangs: in time (contract §4)."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.support.polling import PATIENCE_S, eventually
from tests.turns.exits import (
    TERM,
    WHOLE_S,
    call,
    endless_turn,
    leave,
    recorded,
    serving,
    told,
    unread,
)
from tests.turns.reading import nothing_runs, streaming, submissions
from tests.twin import Hang

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridges import Bridges
    from tests.twin import Twin


async def test_calls_that_wait_for_a_stop_are_answered_with_what_is_known(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    """A batch, a cancel and an end, while OpenCode does not carry out any abort."""
    async with serving(bridges, tmp_path) as server:
        server.call(1, "opencode", prompt="HANG", cwd=str(project), wait_seconds=0)
        cancelled = (await told(server, 1))["sessionId"]
        server.call(2, "opencode", prompt="HANG", cwd=str(project), wait_seconds=0)
        ended = (await told(server, 2))["sessionId"]
        server.call(3, "opencode", prompt="HANG", cwd=str(project), wait_seconds=0)
        watched = (await told(server, 3))["sessionId"]
        await streaming(twin, 3)
        aborts = twin.fail(Hang(), path=r"/abort$", times=None)
        server.call(4, "opencode-status", ids=[cancelled, watched], wait_seconds=60)
        server.call(5, "opencode-cancel", sessionId=cancelled, wait_ms=20000)
        server.call(6, "opencode-end", sessionId=ended)

        async def both() -> bool:
            return len(aborts.hits) >= 2

        await eventually(both, what="both stops were sent")
        code = await leave(server, "eof")
        batch, cancel, end = [await told(server, identity) for identity in (4, 5, 6)]

        assert code == 0
        assert (batch["status"], batch["pendingIds"]) == ("waiting", [cancelled, watched])
        assert (cancel["status"], cancel["done"]) == ("stopping", False)
        assert (end["status"], end["error"]["name"]) == ("ending", "CLEANUP_UNCONFIRMED")
        aborts.release()
    later = await bridges.attached()

    await nothing_runs(twin, within_s=20)
    assert (await later.settled(cancelled)).status == "cancelled"
    assert (await later.settled(watched)).status == "cancelled"
    assert list(twin.world.sessions) == [cancelled, watched]


@pytest.mark.parametrize("action", ["abort", "end"])
async def test_with_an_opencode_that_hangs_it_leaves_in_time_and_the_next_start_goes_on(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path, action: str
) -> None:
    async with serving(bridges, tmp_path, ON_EXIT=action) as server:
        session_id = await endless_turn(server, twin, project)
        everything = twin.fail(Hang(), times=None)
        server.call(2, "opencode-reply", sessionId=session_id, prompt="SAY:more")
        await server.request(3, "tools/list")  # taken after it, so it has begun by then
        await asyncio.wait_for(everything.reached.wait(), PATIENCE_S)
        code = await leave(server, "term")
        cut = await told(server, 2)

        assert code == 0
        assert (await told(server, 1))["status"] == "running"
        assert (cut["error"]["name"], cut["resendSafety"]) == ("SHUTTING_DOWN", "unknown")
        if action == "abort":
            assert recorded(bridges, "stop_reason") == ["cancel"]
        else:
            assert recorded(bridges, "phase", "sessions") == ["ending"]
        assert recorded(bridges, "finished_at") == [None]
        assert len(twin.model.open_streams) == 1
        everything.release()
    later = await bridges.attached()

    await nothing_runs(twin, within_s=20)
    if action == "abort":
        assert (await later.settled(session_id)).status == "cancelled"
    else:
        await eventually(lambda: _is_gone(twin), within_s=20, what="the session is ended")


async def _is_gone(twin: Twin) -> bool:
    return not twin.world.sessions


@pytest.mark.parametrize("action", ["abort", "end"])
async def test_a_prompt_that_is_on_its_way_is_recorded_as_one_to_stop(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path, action: str
) -> None:
    """It arrived, and its answer hangs: there is a turn, and this process never observed it."""
    hanging = twin.fail(Hang(after=True), path=r"/prompt_async$")
    async with serving(bridges, tmp_path, ON_EXIT=action) as server:
        server.call(1, "opencode", prompt="HANG", cwd=str(project), wait_seconds=60)
        await asyncio.wait_for(hanging.reached.wait(), PATIENCE_S)
        await streaming(twin)
        code = await leave(server, "term")
        cut = await told(server, 1)

        assert code == 0
        assert (cut["error"]["name"], cut["resendSafety"]) == ("SHUTTING_DOWN", "unknown")
        hanging.release()
    assert len(twin.model.open_streams) == 1
    await bridges.attached()

    await nothing_runs(twin, within_s=20)
    if action == "end":
        await eventually(lambda: _is_gone(twin), within_s=20, what="the session is ended")


async def parting(twin: Twin) -> None:
    """Wait until the process parts with its turns: it stops the one that it observes."""

    async def check() -> bool:
        return any(line.endswith("/abort") for line in twin.lines())

    await eventually(check, what="a turn is stopped")


@pytest.mark.parametrize("action", ["abort", "keep"])
async def test_a_prompt_that_arrives_during_the_exit_is_like_any_other(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path, action: str
) -> None:
    async with serving(bridges, tmp_path, ON_EXIT=action) as server:
        await endless_turn(server, twin, project)
        hanging = twin.fail(Hang(after=True), path=r"/prompt_async$")
        server.call(2, "opencode", prompt="HANG", cwd=str(project), wait_seconds=60)
        await streaming(twin, 2)
        server.process.send_signal(TERM)
        await told(server, 2)  # cut short
        if action == "abort":
            await parting(twin)
        hanging.release()
        code = await server.exited(within_s=WHOLE_S)
        kept = action == "keep"

        assert code == 0
        assert len(twin.runs.running) == (2 if kept else 0)
        assert recorded(bridges, "finished_at IS NULL") == [kept, kept]
        assert recorded(bridges, "stop_reason") == [None if kept else "cancel"] * 2


async def test_a_start_that_has_not_come_to_its_prompt_does_not_send_it(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    async with serving(bridges, tmp_path) as server:
        await endless_turn(server, twin, project)
        hanging = twin.fail(Hang(), method="POST", path=r"^/session$")
        server.call(2, "opencode", prompt="SAY:late", cwd=str(project))
        await asyncio.wait_for(hanging.reached.wait(), PATIENCE_S)
        server.process.send_signal(TERM)
        await parting(twin)
        hanging.release()
        code = await server.exited(within_s=WHOLE_S)

        assert code == 0
        assert (await told(server, 2))["error"]["name"] == "SHUTTING_DOWN"
        assert submissions(twin) == ["HANG"]


async def test_a_database_that_hangs_does_not_hold_it_up(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    """Nothing can be written down, so nothing is sent. Two turns: each is tried for 6 s."""
    async with serving(bridges, tmp_path) as server:
        await endless_turn(server, twin, project)
        server.call(2, "opencode", prompt="HANG", cwd=str(project), wait_seconds=60)
        await streaming(twin, 2)
        with closing(sqlite3.connect(bridges.database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            server.process.send_signal(TERM)
            code = await server.exited(within_s=WHOLE_S + 1)

        assert code == 0
        assert (await told(server, 2))["status"] == "running"
        assert recorded(bridges, "stop_reason") == [None, None]
        assert not [line for line in twin.lines() if line.endswith("/abort")]


async def test_an_end_that_could_not_be_recorded_is_not_called_accepted(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    async with serving(bridges, tmp_path) as server:
        session_id = await endless_turn(server, twin, project)
        with closing(sqlite3.connect(bridges.database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            server.call(2, "opencode-end", sessionId=session_id)
            server.process.send_signal(TERM)
            end = await told(server, 2)
            await server.exited(within_s=WHOLE_S + 1)

    assert end["error"]["name"] in {"SHUTTING_DOWN", "TRACKING_UNAVAILABLE"}
    assert end.get("accepted") is not True
    assert not [line for line in twin.lines() if line.startswith("DELETE")]


async def test_a_client_that_reads_no_answer_does_not_hold_it_up(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    """30 times some 70 kB, more than any pipe takes."""
    lists = [{"id": identity, "method": "tools/list"} for identity in range(100, 130)]
    turn = call(1, "opencode", prompt="HANG", cwd=str(project))
    async with unread(bridges, tmp_path, turn, *lists) as (process, _):
        await streaming(twin)
        process.send_signal(TERM)
        async with asyncio.timeout(WHOLE_S):
            code = await process.wait()

        assert code == 0
        await nothing_runs(twin)


async def test_a_client_that_is_gone_does_not_hold_it_up(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    turn = call(1, "opencode", prompt="HANG", cwd=str(project))
    async with unread(bridges, tmp_path, turn) as (process, readable):
        await streaming(twin)
        os.close(readable)
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(WHOLE_S):
            code = await process.wait()

        assert code == 0
        await nothing_runs(twin)
    assert "Traceback" not in (tmp_path / "unread.log").read_text(encoding="utf-8")

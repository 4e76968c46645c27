"""How the process exits: on each signal and at the end of stdin (contract §4, ON_EXIT)."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.real.support.raw_stdio import RawStdio
from tests.support.polling import PATIENCE_S, eventually, steadily
from tests.turns.exits import (
    HANDSHAKE,
    TERM,
    WAYS,
    WHOLE_S,
    call,
    endless_turn,
    leave,
    lines_of,
    recorded,
    serving,
    told,
    unread,
)
from tests.turns.reading import nothing_runs, only_session, streaming, submissions
from tests.twin import Hang

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests.support.bridges import Bridges
    from tests.twin import Twin

QUESTION = (
    'TOOL:{"name":"question","args":{"questions":[{"question":"Which?","header":"Q",'
    '"options":[{"label":"a","description":"a"}]}]}}'
)


@pytest.mark.parametrize("way", WAYS)
async def test_a_watching_call_gets_its_snapshot_and_the_turn_is_stopped(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path, way: str
) -> None:
    async with serving(bridges, tmp_path) as server:
        session_id = await endless_turn(server, twin, project)
        code = await leave(server, way)
        (answer,) = server.answers(1)
        snapshot = answer["result"]["structuredContent"]

        assert code == 0
        assert (snapshot["status"], snapshot["sessionId"]) == ("running", session_id)
        assert answer["result"].get("isError") is not True
        assert "SHUTTING_DOWN" in snapshot["content"]
        assert [warning["code"] for warning in snapshot["warnings"]] == ["SHUTTING_DOWN"]
        await nothing_runs(twin)
    later = await bridges.attached()

    assert (await later.status(session_id)).status == "cancelled"


@pytest.mark.parametrize("way", ["term", "eof"])
async def test_on_exit_end_ends_the_sessions_whose_turns_run(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path, way: str
) -> None:
    async with serving(bridges, tmp_path, ON_EXIT="end") as server:
        server.call(1, "opencode", prompt="SAY:done", cwd=str(project))
        idle = (await told(server, 1))["sessionId"]
        server.call(2, "opencode", prompt="HANG", cwd=str(project), wait_seconds=0)
        running = (await told(server, 2))["sessionId"]
        await streaming(twin)
        code = await leave(server, way)

        assert code == 0
        assert list(twin.world.sessions) == [idle], "the idle one is not touched"
        await nothing_runs(twin)
    later = await bridges.attached()

    assert (await later.status(running)).error == "SESSION_NOT_FOUND"
    assert (await later.status(idle)).status == "completed"


@pytest.mark.parametrize("way", ["term", "eof"])
async def test_on_exit_keep_lets_them_run_and_the_next_start_observes_them(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path, way: str
) -> None:
    """Also where a cancelled call would stop its turn: the client did not cancel it."""
    async with serving(bridges, tmp_path, ON_EXIT="keep") as server:
        session_id = await endless_turn(server, twin, project)
        code = await leave(server, way)
        snapshot = await told(server, 1)

        assert code == 0
        assert snapshot["status"] == "running"
        assert "runs on" in snapshot["content"]

    async def runs() -> bool:
        return len(twin.model.open_streams) == 1 and not [
            line for line in twin.lines() if line.endswith("/abort")
        ]

    await steadily(runs, for_s=1, what="the turn runs on")
    later = await bridges.attached()
    assert (await later.status(session_id)).status == "running"
    assert (await later.end(session_id)).status == "ended"


async def test_requests_right_before_the_end_of_stdin_are_answered(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    """All in one write, the last line without its end, and nothing after it."""
    messages = [
        *HANDSHAKE,
        {"id": 1, "method": "tools/list"},
        call(2, "opencode-status"),
        call(3, "opencode-end", sessionId="ses_unknown"),
        call(4, "opencode", prompt="HANG", cwd=str(project)),
    ]
    async with RawStdio(bridges.attach_env(), tmp_path) as server:
        assert server.process.stdin is not None
        server.process.stdin.write(lines_of(*messages))
        code = await server.close_stdin()

        assert code == 0
        assert (await server.answer(1))["result"]["tools"]
        assert (await told(server, 2))["kind"] == "sessions"
        assert (await told(server, 3))["status"] == "not_found"
        started = await told(server, 4)
        assert started["status"] == "running"
        assert started["sessionId"] == only_session(twin)
        assert submissions(twin) == ["HANG"]
        await nothing_runs(twin)


async def test_after_a_signal_short_calls_finish_and_new_ones_are_refused(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    async with serving(bridges, tmp_path) as server:
        server.call(1, "opencode", prompt="SAY:one", cwd=str(project))
        await told(server, 1)
        hanging = twin.fail(Hang(), path=r"^/session/status$")
        server.call(2, "opencode-status")
        await asyncio.wait_for(hanging.reached.wait(), PATIENCE_S)
        await endless_turn_beside(server, twin, project)
        server.process.send_signal(TERM)
        await told(server, 3)  # the snapshot: it has begun to exit
        server.call(4, "opencode", prompt="SAY:late", cwd=str(project))
        server.call(5, "opencode-status", sessionId="ses_any")
        refused, also = await told(server, 4), await told(server, 5)
        hanging.release()
        code = await server.exited(within_s=WHOLE_S)

        assert code == 0
        assert refused["error"]["name"] == "SHUTTING_DOWN"
        assert refused["resendSafety"] == "not_submitted"
        assert also["error"]["name"] == "SHUTTING_DOWN"
        assert (await told(server, 2))["kind"] == "sessions"
        assert submissions(twin) == ["SAY:one", "HANG"]
        await nothing_runs(twin)


async def endless_turn_beside(server: RawStdio, twin: Twin, project: Path) -> None:
    """Begin another turn that a call watches, beside a session that is there already."""
    server.call(3, "opencode", prompt="HANG", cwd=str(project), wait_seconds=60)
    await streaming(twin)


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


async def test_a_person_who_is_being_asked_does_not_hold_it_up(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    asks: Json = {"capabilities": {"elicitation": {}}}
    async with RawStdio(bridges.attach_env(), tmp_path) as server:
        await server.request(0, "initialize", HANDSHAKE[0]["params"] | asks)
        server.notify("notifications/initialized")
        arguments = {"prompt": QUESTION, "cwd": str(project), "wait_seconds": 60}
        # the server counts its own requests from 1
        server.call(70, "opencode", approval_policy="on-request", **arguments)

        async def asked() -> bool:
            return any(one.get("method") == "elicitation/create" for one in server.messages())

        await eventually(asked, what="the person is asked")
        code = await leave(server, "eof")

        assert code == 0
        assert (await told(server, 70))["status"] == "waiting_for_approval"
        await nothing_runs(twin)


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


async def test_a_turn_of_another_process_is_said_to_run_on(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    owner = await bridges.attached()
    session_id = await owner.begin("HANG", project)
    await streaming(twin)
    async with serving(bridges, tmp_path) as server:
        server.call(1, "opencode-status", sessionId=session_id, wait_seconds=60)

        async def listens() -> bool:
            return len([seen for seen in twin.requests if seen.path.endswith("/event")]) == 2

        await eventually(listens, what="the second process looks at the turn")
        code = await leave(server, "term")
        snapshot = await told(server, 1)

        assert code == 0
        assert snapshot["status"] == "running"
        assert "runs on" in snapshot["content"]
    assert (await owner.status(session_id)).status == "running"


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


async def test_a_second_signal_ends_at_once(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    async with serving(bridges, tmp_path) as server:
        await endless_turn(server, twin, project)
        aborts = twin.fail(Hang(), path=r"/abort$", times=None)
        server.process.send_signal(TERM)
        await asyncio.wait_for(aborts.reached.wait(), PATIENCE_S)
        server.process.send_signal(TERM)
        code = await server.exited(within_s=3)  # not the 7 s that the abort would be given

        assert code == 128 + TERM
        assert recorded(bridges, "stop_reason") == ["cancel"]
        aborts.release()


async def test_a_signal_after_the_end_of_stdin_is_a_first_one(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    """Clients close stdin and send SIGTERM 2 s later: the stop goes on."""
    async with serving(bridges, tmp_path) as server:
        await endless_turn(server, twin, project)
        aborts = twin.fail(Hang(), path=r"/abort$", times=None)
        assert server.process.stdin is not None
        server.process.stdin.close()
        await asyncio.wait_for(aborts.reached.wait(), PATIENCE_S)
        server.process.send_signal(TERM)
        await told(server, 1)
        aborts.release()
        code = await server.exited(within_s=WHOLE_S)

        assert code == 0
        assert not twin.runs.running


async def test_a_client_that_reads_no_answer_does_not_hold_it_up(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    """60 times some 20 kB, more than any pipe takes."""
    lists = [{"id": identity, "method": "tools/list"} for identity in range(100, 160)]
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

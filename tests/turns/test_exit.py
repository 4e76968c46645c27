"""How the process exits: on each signal and at the end of stdin (contract §4, ON_EXIT)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.real.support.raw_stdio import RawStdio
from tests.support.polling import PATIENCE_S, eventually, steadily
from tests.turns.asks import QUESTION
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
)
from tests.turns.reading import nothing_runs, only_session, streaming, submissions
from tests.twin import Hang

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests.support.bridges import Bridges
    from tests.twin import Twin


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

"""Ends when something stays wrong: messages that cannot be read, a process that hangs, clocks."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.engine import finisher, stopping
from tests.support.polling import eventually, steadily
from tests.support.victim import Errand, Victim
from tests.turns.kills import ENDLESS, killed_with_a_turn
from tests.turns.reading import nothing_runs, streaming
from tests.twin import Body, Hang, Reset, Status, Twin

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ends.conftest import SetClock
    from tests.support.bridges import Bridges
    from tests.twin.faults import Fault

MESSAGES = r"/message(/msg_\w+)?$"


pytestmark = pytest.mark.usefixtures("soon")


@pytest.mark.parametrize("fault", [Status(500), Body(b"[{}]"), Hang()], ids=["500", "odd", "hang"])
async def test_messages_that_cannot_be_read_keep_no_session_from_ending(
    bridges: Bridges, twin: Twin, project: Path, fault: Fault
) -> None:
    session_id = await killed_with_a_turn(bridges, twin, project)
    twin.fail(fault, method="GET", path=MESSAGES, times=None)
    bridge = await bridges.attached(REQUEST_TIMEOUT_SECONDS="1", CLEANUP_TIMEOUT_SECONDS="10")
    ended = await bridge.end(session_id)
    assert ended.status == "ended", ended.text
    assert ended.structured["abortedRunningTurn"] is True
    await nothing_runs(twin)
    assert not twin.world.sessions


async def test_many_that_somebody_deleted_are_ended_where_others_prove_whose_data_it_is(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    bridge = await bridges.attached(CLEANUP_TIMEOUT_SECONDS="2")
    kept = (await bridge.start("SAY:kept", project)).session_id
    gone = [(await bridge.start("SAY:gone", project)).session_id for _ in range(9)]
    await bridge.close()  # nobody hears of it
    for session_id in gone:
        await twin.runs.delete(session_id)
    second = await bridges.attached(CLEANUP_TIMEOUT_SECONDS="2")
    answers = await asyncio.gather(*(second.end(session_id) for session_id in gone))
    assert {answer.status for answer in answers} == {"ended"}
    assert (await second.status(kept)).status == "completed"


async def test_an_ending_session_is_told_at_once_with_the_reason_though_opencode_hangs(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    bridge = await bridges.attached(REQUEST_TIMEOUT_SECONDS="30", CLEANUP_TIMEOUT_SECONDS="1")
    session_id = (await bridge.start("SAY:x", project)).session_id
    hanging = twin.fail(Hang(), times=None)
    assert (await bridge.end(session_id)).status == "ending"
    async with asyncio.timeout(5):  # not the 30 s that a request may take
        answer = await bridge.status(session_id)
    assert answer.status == "ending"
    assert answer.structured["ending"]["lastError"]
    hanging.release()


async def test_an_end_that_another_process_has_finished_is_told_as_ended(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    bridge = await bridges.attached(REQUEST_TIMEOUT_SECONDS="30", CLEANUP_TIMEOUT_SECONDS="1")
    session_id = (await bridge.start("SAY:x", project)).session_id
    hanging = twin.fail(Hang(), method="POST", path=r"/abort$")
    ending = asyncio.create_task(bridge.end(session_id, action="archive"))
    await hanging.reached.wait()
    told = (
        f'{{"session_id": "{session_id}", "action": "archive", "aborted_running_turn": true,'
        ' "rejected_permissions": 0, "rejected_questions": 0, "ended_subsessions": 0}'
    )
    with closing(sqlite3.connect(bridges.database)) as file, file:
        file.execute("PRAGMA foreign_keys = ON")
        file.execute("DELETE FROM sessions WHERE id = ?", [session_id])
        file.execute(
            "INSERT INTO tombstones VALUES (?, 'local', 'archive', '2026-01-01T00:00:00Z', ?)",
            [session_id, told],
        )
    answer = await ending
    assert (answer.status, answer.structured["action"]) == ("ended", "archive")
    assert answer.structured["abortedRunningTurn"] is True
    hanging.release()


async def test_an_end_goes_on_though_the_clock_was_set_back_since_it_was_put_off(
    bridges: Bridges, twin: Twin, project: Path, set_clock: SetClock
) -> None:
    bridge = await bridges.attached(CLEANUP_TIMEOUT_SECONDS="1")
    session_id = (await bridge.start("SAY:x", project)).session_id
    set_clock.by(hours=1)
    failing = twin.fail(Status(503), path=f"^/session/{session_id}", times=None)
    assert (await bridge.end(session_id)).status == "ending"
    set_clock.by(hours=0)
    failing.release()

    async def ended() -> bool:
        return await bridge.is_ended(session_id)

    await eventually(ended, within_s=10, what="the end is finished")


async def test_a_clock_that_is_set_ahead_makes_no_session_idle(
    bridges: Bridges, project: Path, set_clock: SetClock
) -> None:
    bridge = await bridges.attached(SESSION_IDLE_TTL_SECONDS="600")
    session_id = (await bridge.start("SAY:x", project)).session_id
    set_clock.by(hours=1)

    async def there() -> bool:
        return (await bridge.status(session_id)).status == "completed"

    await steadily(there, for_s=0.7, what="the session is tracked")


async def test_the_turn_of_a_process_that_hangs_is_stopped_by_another_and_only_then(
    bridges: Bridges, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finisher, "GRACE_S", 1.5)
    errand = Errand(
        env=bridges.attach_env(), folder=project, job="start", prompts=(ENDLESS,), timeout_s=2
    )
    frozen = Victim(errand)
    session_id = await frozen.answer()
    await streaming(twin)
    frozen.signal(signal.SIGSTOP)
    bridge = await bridges.attached()
    assert (await bridge.status(session_id)).status == "running"  # observed here from now on
    answer = await bridge.settled(session_id, within_s=20)
    assert answer.status == "timeout"
    assert answer.structured["elapsedMs"] > 3_000  # it was left to its own process before
    await nothing_runs(twin)
    await frozen.kill()


async def test_a_turn_that_was_only_watched_is_owned_once_its_process_is_dead(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    errand = Errand(env=bridges.attach_env(), folder=project, job="start", prompts=(ENDLESS,))
    starter = Victim(errand)
    session_id = await starter.answer()
    await streaming(twin)
    bridge = await bridges.attached()
    assert (await bridge.status(session_id)).status == "running"
    with closing(sqlite3.connect(bridges.database)) as file:
        before = file.execute("SELECT holder FROM turns").fetchall()
    await starter.kill()

    async def taken() -> bool:
        with closing(sqlite3.connect(bridges.database)) as file:
            return file.execute("SELECT holder FROM turns").fetchall() != before

    await eventually(taken, what="the turn has another holder")
    assert session_id in twin.runs.running
    await bridge.close()
    await nothing_runs(twin)


async def test_a_prompt_that_leaves_after_its_session_was_archived_is_stopped(
    bridges: Bridges, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "UNSEEN_PROMPT_S", 0.2)
    bridge = await bridges.attached()
    session_id = (await bridge.start("SAY:x", project)).session_id
    leaving = twin.fail(Hang(), method="POST", path=r"/prompt_async$")
    reply = asyncio.create_task(
        bridge.call("opencode-reply", sessionId=session_id, prompt=ENDLESS, wait_seconds=20)
    )
    await leaving.reached.wait()
    ended = await bridge.end(session_id, action="archive")
    assert ended.status == "ended", ended.text
    leaving.release()
    answer = await reply
    assert answer.status in {"cancelled", "error"}, answer.text
    await nothing_runs(twin)


async def test_a_process_that_cannot_reach_the_instance_does_not_hold_up_one_that_can(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    first = await bridges.attached(CLEANUP_TIMEOUT_SECONDS="1")
    session_id = (await first.start("SAY:x", project)).session_id
    await first.close()
    async with Twin(tmp_path) as elsewhere:
        stranger = await bridges.attached(
            SERVER_URL=elsewhere.url, SERVER_PASSWORD=elsewhere.password
        )
        answer = await stranger.end(session_id)
        assert answer.status == "ending"
        assert twin.url in answer.text  # who can act on it

        async def not_put_off() -> bool:
            with closing(sqlite3.connect(bridges.database)) as file:
                return file.execute("SELECT end_next_at FROM sessions").fetchall() == [(None,)]

        await steadily(not_put_off, for_s=0.7, what="the end is due for others")
        assert elsewhere.lines() == ["GET /global/health"] or not elsewhere.lines()
        await bridges.attached()

        async def gone() -> bool:
            return not twin.world.sessions

        await eventually(gone, what="who reaches it ends it")
        await stranger.close()


async def test_what_an_end_did_before_an_outage_is_in_the_answer_that_stays(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    bridge = await bridges.attached(CLEANUP_TIMEOUT_SECONDS="1")
    session_id = await bridge.begin(ENDLESS, project)
    await streaming(twin)
    twin.fail(Reset(after=True), method="DELETE")
    reads = twin.fail(Status(503), method="GET", path=f"^/session/{session_id}$", nth=2, times=None)
    assert (await bridge.end(session_id)).status == "ending"
    assert not twin.world.sessions
    reads.release()

    async def ended() -> bool:
        return await bridge.is_ended(session_id)

    await eventually(ended, what="the end is finished")
    with closing(sqlite3.connect(bridges.database)) as file:
        (told,) = file.execute("SELECT answer_json FROM tombstones").fetchone()
    assert json.loads(told)["aborted_running_turn"] is True


async def test_the_late_turn_of_a_process_that_hangs_is_stopped_by_another(
    bridges: Bridges, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finisher, "GRACE_S", 0.5)
    errand = Errand(bridges.attach_env(), project, "start", prompts=(ENDLESS,), timeout_s=3)
    owner = Victim(errand)
    session_id = await owner.answer()
    await streaming(twin)
    owner.signal(signal.SIGSTOP)
    other = await bridges.attached()  # its finisher alone sees to it: nobody calls

    async def stopped() -> bool:
        return not twin.runs.running

    await eventually(stopped, what="the late turn is stopped")
    answer = await other.settled(session_id)
    assert answer.status == "timeout"
    owner.signal(signal.SIGCONT)
    await owner.kill()

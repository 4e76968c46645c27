"""What the finisher does unasked: idle sessions, left starts; clocks that jump, ends that hang."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.support.polling import eventually, steadily
from tests.support.victim import Errand, Victim
from tests.turns.kills import ENDLESS, killed_with_a_turn
from tests.turns.reading import streaming
from tests.twin import Hang, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ends.conftest import SetClock
    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin


pytestmark = pytest.mark.usefixtures("soon")


# --- idle for too long ---


@pytest.mark.parametrize("action", ["delete", "archive"])
async def test_a_session_that_nobody_uses_is_ended_and_one_at_work_is_not(
    bridges: Bridges, twin: Twin, project: Path, action: str
) -> None:
    bridge = await bridges.attached(SESSION_IDLE_TTL_SECONDS="1", END_ACTION=action)
    at_work = await bridge.begin(ENDLESS, project)
    await streaming(twin)
    idle = (await bridge.start("SAY:x", project)).session_id

    async def ended() -> bool:
        return await bridge.is_ended(idle)

    await eventually(ended, what="the idle session is ended")
    if action == "delete":
        assert set(twin.world.sessions) == {at_work}
    else:
        assert "archived" in twin.world.sessions[idle]["time"]
    assert (await bridge.status(at_work)).status == "running"
    told = (await bridge.status(idle)).text
    assert "ended at 20" in told
    assert f"({action})" in told


async def test_idle_sessions_of_before_are_ended_though_nobody_calls(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    first = await bridges.attached()
    session_id = (await first.start("SAY:x", project)).session_id
    await first.close()
    assert session_id in twin.world.sessions
    await bridges.attached(SESSION_IDLE_TTL_SECONDS="1")

    async def gone() -> bool:
        return not twin.world.sessions

    await eventually(gone, what="the session is deleted")


async def test_without_a_limit_nothing_is_ended(bridge: Bridge, project: Path) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id

    async def there() -> bool:
        return (await bridge.status(session_id)).status == "completed"

    await steadily(there, for_s=1.5, what="the session is tracked")


# --- clocks ---


async def test_the_turn_of_a_live_process_goes_on_though_the_clock_is_set_an_hour_ahead(
    bridges: Bridges, twin: Twin, project: Path, set_clock: SetClock
) -> None:
    first = await bridges.attached()
    await bridges.attached()  # never asked about it
    session_id = await first.begin(ENDLESS, project, timeout_seconds=600)
    await streaming(twin)

    def rows() -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(bridges.database)) as file:
            return file.execute("SELECT holder, stop_reason FROM turns").fetchall()

    before = rows()

    async def is_left_alone() -> bool:
        return session_id in twin.runs.running and rows() == before

    await steadily(is_left_alone, for_s=0.5, what="the turn runs")
    set_clock.by(hours=1)
    await steadily(is_left_alone, for_s=0.5, what="the turn runs on")
    third = await bridges.attached()  # its clock never said anything else
    assert (await third.status(session_id)).status == "running"
    await steadily(is_left_alone, for_s=0.5, what="the turn runs on")


@pytest.mark.parametrize("hours", [1, -1], ids=["ahead", "back"])
async def test_after_a_restart_a_turn_never_gets_more_than_its_own_limit(
    bridges: Bridges, twin: Twin, project: Path, set_clock: SetClock, hours: int
) -> None:
    session_id = await killed_with_a_turn(bridges, twin, project, timeout_s=2)
    set_clock.by(hours)
    second = await bridges.attached()
    answer = await second.settled(session_id, within_s=20)
    assert (answer.status, answer.is_error) == ("timeout", True)
    assert not twin.runs.running


# --- what hangs, and what cannot be done yet ---


async def test_an_end_that_cannot_be_done_holds_up_no_other(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    bridge = await bridges.attached(REQUEST_TIMEOUT_SECONDS="2", CLEANUP_TIMEOUT_SECONDS="1")
    stuck, fine = [(await bridge.start("SAY:x", project)).session_id for _ in range(2)]
    hanging = twin.fail(Hang(), path=f"^/session/{stuck}", times=None)
    failing = twin.fail(Status(503), path=f"^/session/{fine}", times=None)
    for session_id in (stuck, fine):
        assert (await bridge.end(session_id)).status == "ending"
    failing.release()

    async def ended() -> bool:
        return await bridge.is_ended(fine)

    await eventually(ended, what="the other end is finished")
    answer = await bridge.status(stuck)
    assert answer.status == "ending"
    assert answer.structured["ending"]["attempt"] >= 1
    hanging.release()

    async def all_ended() -> bool:
        return await bridge.is_ended(stuck)

    await eventually(all_ended, what="the end that hung is finished")


async def test_a_session_that_was_created_and_never_tracked_is_deleted(
    bridges: Bridges, twin: Twin, project: Path, set_clock: SetClock
) -> None:
    """Ours: its process died between the create and the tracking, and its answer with it."""
    errand = Errand(env=bridges.attach_env(), folder=project, job="start", prompts=("SAY:x",))
    creating = twin.fail(Hang(after=True), method="POST", path=r"^/session$")
    victim = Victim(errand)
    await creating.reached.wait()
    await victim.kill()
    creating.release()
    assert len(twin.world.sessions) == 1
    await bridges.attached()

    async def stays() -> bool:
        return len(twin.world.sessions) == 1

    await steadily(stays, for_s=0.5, what="a young start is left alone")
    set_clock.by(hours=1)

    async def gone() -> bool:
        with closing(sqlite3.connect(bridges.database)) as file:
            left = file.execute("SELECT count(*) FROM starts").fetchone()
        return not twin.world.sessions and left == (0,)

    await eventually(gone, what="the session that nobody tracks is deleted")

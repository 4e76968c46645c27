"""`opencode-cancel` when OpenCode hangs, is down, loses the abort, or begins the turn after it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.turns.cancels import (
    ENDLESS,
    aborts,
    cancel,
    eventually_quiet,
    running,
    stays_quiet,
    verdict,
)
from tests.turns.reading import always_busy, held, only_session, streaming
from tests.twin import Hang, Pace, Reset, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin
    from tests.twin.faults import Fault

ABORT = r"/abort$"


async def test_a_hung_opencode_gets_the_abort_and_the_answer_says_what_is_known(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    bridge = await bridges.attached(REQUEST_TIMEOUT_SECONDS="30")
    session_id = await bridge.begin(ENDLESS, project)
    await running(twin, session_id)
    hang = twin.fail(Hang(), times=None)
    answer = await cancel(bridge, session_id)
    assert verdict(answer) == ("stopping", True, False, False, None), answer.text
    assert not answer.is_error
    assert aborts(twin) == 1
    hang.release()
    assert (await bridge.settled(session_id)).status == "cancelled"
    assert not twin.runs.running


async def test_an_opencode_that_refuses_is_an_error_and_the_stop_comes_later(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Contract 2.2: only what proves "already over" counts as that; the wish is kept."""
    session_id = await bridge.begin(ENDLESS, project)
    await running(twin, session_id)
    await twin.refuse()
    answer = await cancel(bridge, session_id)
    assert (answer.is_error, answer.error) == (True, "OPENCODE_UNAVAILABLE"), answer.text
    assert verdict(answer) == ("stopping", False, False, False, None)
    assert session_id in answer.text
    assert session_id in twin.runs.running
    await twin.listen()
    assert (await bridge.settled(session_id)).status == "cancelled"
    assert session_id not in twin.runs.running


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Status(503), id="503"),
        pytest.param(Status(500), id="500"),
        pytest.param(Reset(), id="reset-before"),
        pytest.param(Reset(after=True), id="reset-after"),
    ],
)
async def test_a_lost_or_refused_abort_is_sent_again(
    bridge: Bridge, twin: Twin, project: Path, fault: Fault
) -> None:
    """Case 46: nothing is called stopped before an abort was answered."""
    session_id = await bridge.begin(ENDLESS, project)
    await running(twin, session_id)
    twin.fail(fault, method="POST", path=ABORT)
    answer = await cancel(bridge, session_id, wait_ms=15_000)
    assert verdict(answer) == ("cancelled", True, True, False, True), answer.text
    assert aborts(twin) >= 2
    assert session_id not in twin.runs.running


async def test_a_prompt_that_is_not_visible_yet_is_waited_for(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """OpenCode: an abort before the prompt is resolved answers true and is lost (facts 4.6)."""
    twin.pace = Pace(resolving_s=1.0)
    twin.runs.pace = twin.pace
    session_id = await bridge.begin(ENDLESS, project)
    answer = await cancel(bridge, session_id, wait_ms=10_000)
    assert verdict(answer) == ("cancelled", True, True, False, True), answer.text
    await stays_quiet(twin, session_id)


async def test_a_turn_that_begins_after_the_abort_is_aborted_again(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """OpenCode: some time lies between the user message and busy; an abort in it may be lost."""
    twin.pace.starting_s = 0.3
    session_id = await bridge.begin(ENDLESS, project)
    answer = await cancel(bridge, session_id, wait_ms=10_000)
    assert verdict(answer) == ("cancelled", True, True, False, True), answer.text
    await stays_quiet(twin, session_id)


async def test_the_wish_survives_a_process_that_dies_before_it_is_confirmed(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """The finisher: what one process recorded, the next carries out, though nobody calls it."""
    first = await bridges.attached()
    session_id = await first.begin(ENDLESS, project)
    await running(twin, session_id)
    hang = twin.fail(Hang(), method="POST", path=ABORT, times=None)
    await cancel(first, session_id, wait_ms=0)
    await first.close()
    assert session_id in twin.runs.running
    hang.release()
    await bridges.attached()
    await eventually_quiet(twin, session_id)


async def test_a_session_that_stays_busy_after_its_answer_can_be_freed(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Case B07: the answer stays what it is, and an abort goes out all the same."""
    with held(twin):
        call = asyncio.create_task(bridge.start("SAY:told", project))
        await streaming(twin)
        session_id = only_session(twin)
        busy = always_busy(twin, session_id)
    assert (await call).status == "completed"
    before = len(twin.requests)
    answer = await cancel(bridge, session_id, wait_ms=0)
    busy.release()
    assert (answer.status, answer.structured["accepted"]) == ("completed", True)
    assert answer.structured["cancelled"] is False
    assert aborts(twin, before) >= 1


async def test_a_cancel_after_a_restart_in_an_outage_is_kept(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """The first that the new process asks of OpenCode is the stop, and it is not there."""
    first = await bridges.attached(ON_CALL_CANCEL="keep")
    session_id = await first.begin(ENDLESS, project)
    await running(twin, session_id)
    await twin.refuse()
    second = await bridges.attached()
    answer = await cancel(second, session_id)
    assert verdict(answer) == ("stopping", False, False, False, None), answer.text
    assert answer.error == "OPENCODE_UNAVAILABLE"
    assert session_id in twin.runs.running
    await twin.listen()
    await eventually_quiet(twin, session_id)
    assert (await second.settled(session_id)).status == "cancelled"

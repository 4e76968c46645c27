"""Stopping a turn while OpenCode is slow, down, forgetful or contradictory."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.turns.reading import nothing_runs, only_session, streaming, submissions
from tests.twin import Reset, Status, Truncate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin
    from tests.twin.faults import Fault

ABORT = r"/abort$"
FAULTS: dict[str, Fault] = {
    "503": Status(503),
    "reset": Reset(),
    "lost": Reset(after=True),
    "truncated": Truncate(),
}


async def test_a_timeout_while_the_prompt_is_still_resolved_waits_for_it(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    twin.pace.resolving_s = 2.0
    answer = await bridge.start("HANG", project, timeout_seconds=1)

    assert (answer.status, answer.is_error) == ("timeout", True)
    await nothing_runs(twin)


@pytest.mark.parametrize("prompt", ["HANG", "SLOW:400,1", "STATUS:503"])
async def test_a_turn_that_runs_out_of_time_is_stopped(
    bridge: Bridge, twin: Twin, project: Path, prompt: str
) -> None:
    """Also in a provider's back-off, where an abort leaves no trace (facts 4.4)."""
    twin.pace.retries_s = (30.0,)
    answer = await bridge.start(prompt, project, timeout_seconds=1)
    reply = await bridge.call("opencode-reply", sessionId=answer.session_id, prompt="SAY:on")

    assert (answer.status, answer.is_error) == ("timeout", True)
    assert answer.structured["cleanup"] == "complete"
    assert (reply.status, "on" in reply.text) == ("completed", True)
    await nothing_runs(twin)


async def test_the_time_limit_is_kept_although_nobody_watches(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = await bridge.begin("HANG", project, timeout_seconds=1)
    await streaming(twin)
    await nothing_runs(twin)

    assert (await bridge.settled(session_id)).status == "timeout"


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_stop_whose_abort_fails_is_repeated(
    bridge: Bridge, twin: Twin, project: Path, fault: str
) -> None:
    planned = twin.fail(FAULTS[fault], path=ABORT, times=4)
    answer = await bridge.start("HANG", project, timeout_seconds=1)

    assert answer.status == "timeout"
    assert planned.hits
    await nothing_runs(twin)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_cancelled_call_stops_its_turn_once_and_for_all(
    bridge: Bridge, twin: Twin, project: Path, fault: str
) -> None:
    """Case 42: whatever comes in between, the end is `cancelled`, and stays that."""
    call = asyncio.create_task(bridge.start("HANG", project))
    await streaming(twin)
    session_id = only_session(twin)
    twin.fail(FAULTS[fault], path=ABORT)
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
    settled = await bridge.settled(session_id)
    later = await bridge.status(session_id)

    assert (settled.status, later.status) == ("cancelled", "cancelled")
    assert submissions(twin) == ["HANG"]
    await nothing_runs(twin)


async def test_a_stop_that_meets_the_end_of_the_turn_is_told_as_one_of_both(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """Case 42 and facts 4.7: either way, once, and unchanged afterwards; the message decides.

    Over stdio, as callers have it: the SDK's in-memory transport was seen to close here.
    """
    bridge = await bridges.attached_process()
    for part_s in (0.0, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5):
        before = set(twin.world.sessions)
        call = asyncio.create_task(bridge.start("SLOW:8,1", project))  # 20 words a second: 0.4 s
        await streaming(twin)
        (session_id,) = set(twin.world.sessions) - before
        await asyncio.wait({call}, timeout=part_s)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        settled = await bridge.settled(session_id)
        later = await bridge.status(session_id)
        newest = twin.world.messages(session_id)[-1]["info"]
        expected = "cancelled" if "error" in newest else "completed"
        assert (settled.status, later.status) == (expected, expected)


async def test_a_restart_of_ours_finds_a_finished_turn_as_it_is(
    bridges: Bridges, project: Path
) -> None:
    first = await bridges.attached()
    finished = await first.start("SAY:before", project)
    await first.close()
    second = await bridges.attached()
    status = await second.status(finished.session_id)
    reply = await second.call("opencode-reply", sessionId=finished.session_id, prompt="SAY:after")

    assert (status.status, "before" in status.text) == ("completed", True)
    assert (reply.status, reply.structured["turn"]) == ("completed", 2)


async def test_a_turn_whose_server_died_is_observed_by_the_next_one_that_looks(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """Its time limit is the turn's own, so it is kept although whoever set it is gone."""
    first = await bridges.attached_process()
    session_id = await first.begin("HANG", project, timeout_seconds=6)
    await streaming(twin)
    first.signal(signal.SIGKILL)
    await first.dead()
    second = await bridges.attached()
    status = await second.status(session_id)
    await nothing_runs(twin, within_s=15)

    assert status.status == "running"
    assert (await second.settled(session_id)).status == "timeout"


async def test_a_server_that_is_closed_stops_the_turns_that_it_runs(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """Contract §4, ON_EXIT: the turns of this process end with it."""
    first = await bridges.attached()
    session_id = await first.begin("HANG", project)
    await streaming(twin)
    await first.close()
    second = await bridges.attached()

    await nothing_runs(twin)
    assert (await second.settled(session_id)).status == "cancelled"


async def test_a_server_that_is_closed_lets_the_turns_of_others_run(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    first = await bridges.attached()
    session_id = await first.begin("HANG", project)
    await streaming(twin)
    second = await bridges.attached(ON_EXIT="abort")
    status = await second.status(session_id)
    await second.close()

    assert status.status == "running"
    assert (await first.status(session_id)).status == "running"
    assert [line for line in twin.lines() if line.endswith("/abort")] == []


async def test_a_stop_under_way_is_carried_out_before_a_server_leaves_that_keeps_its_turns(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    first = await bridges.attached(ON_EXIT="keep")
    session_id = await first.begin("HANG", project)
    await streaming(twin)
    twin.fail(Status(503), path=ABORT, times=2)
    await first.call("opencode-cancel", sessionId=session_id, wait_ms=0)
    await first.close()

    assert not twin.runs.running


async def test_an_end_that_a_server_carries_out_as_it_leaves_uses_the_default_action(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    first = await bridges.attached(ON_EXIT="end", END_ACTION="archive")
    session_id = await first.begin("HANG", project)
    await streaming(twin)
    await first.close()

    assert twin.world.sessions[session_id]["time"]["archived"]
    await nothing_runs(twin)

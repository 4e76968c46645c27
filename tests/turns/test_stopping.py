"""Stopping a turn and ending a session while OpenCode is slow, down, forgetful or contradictory."""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.support.polling import eventually, steadily
from tests.turns.reading import only_session, settled_end, streaming, submissions
from tests.twin import Hang, Reset, Restart, Status, Truncate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin
    from tests.twin.faults import Fault

ABORT = r"/abort$"
#: `bridge`: an end may take 4 s, and a request 2 s
_ANSWERED_WITHIN_S = 8.0

#: each step of an end, as a request
STEPS = {
    "abort": ("POST", ABORT),
    "children": ("GET", r"/children$"),
    "status": ("GET", r"^/session/status$"),
    "permissions": ("GET", r"^/permission$"),
    "questions": ("GET", r"^/question$"),
    "read": ("GET", r"^/session/ses[^/]+$"),
    "delete": ("DELETE", r"^/session/"),
}
FAULTS: dict[str, Fault] = {
    "503": Status(503),
    "429": Status(429, retry_after="1"),
    "reset": Reset(),
    "lost": Reset(after=True),
    "truncated": Truncate(),
    "restart": Restart(),
}
#: case 44: ids made to reach another route or another session
HOSTILE = (
    "x/../ses_other",
    "../instance/dispose?x=",
    "ses_a?directory=/",
    "",
    "   ",
    "ses_a\nses_b",
    "ses_a,ses_b",
)


async def nothing_runs(twin: Twin, *, within_s: float = 5) -> None:
    """Fail unless nothing runs in the twin, and nothing begins to."""

    async def check() -> bool:
        return not twin.runs.running and not twin.model.open_streams

    await eventually(check, within_s=within_s, what="nothing runs")
    await steadily(check, for_s=0.3, what="nothing runs any more")


@pytest.mark.parametrize("how", ["down", "hung"])
async def test_an_end_in_an_outage_is_told_in_time_and_finished_later(
    bridge: Bridge, twin: Twin, project: Path, how: str
) -> None:
    """Case 45."""
    session_id = await bridge.begin("HANG", project)
    await streaming(twin)
    hung = twin.fail(Hang(), times=None) if how == "hung" else None
    if hung is None:
        await twin.refuse()
    began = time.monotonic()
    answer = await bridge.end(session_id)
    took_s = time.monotonic() - began
    existed = session_id in twin.world.sessions
    if hung is None:
        await twin.listen()
    else:
        hung.release()
    again = await settled_end(bridge, session_id)

    assert (answer.is_error, answer.error) == (True, "CLEANUP_UNCONFIRMED")
    assert (answer.structured["done"], existed) == (False, True)
    assert took_s < _ANSWERED_WITHIN_S
    assert again.status == "ended"
    assert twin.world.sessions == {}
    await nothing_runs(twin)


@pytest.mark.parametrize("action", ["delete", "archive"])
async def test_nothing_is_removed_before_an_abort_was_answered(
    bridge: Bridge, twin: Twin, project: Path, action: str
) -> None:
    """Case 46."""
    session_id = await bridge.begin("HANG", project)
    await streaming(twin)
    since = len(twin.requests)
    refused = twin.fail(Status(503), path=ABORT, times=2)
    ended = await bridge.end(session_id, action=action)
    removal = f"{'DELETE' if action == 'delete' else 'PATCH'} /session/{session_id}"
    sent = twin.lines(since)
    aborts = [index for index, line in enumerate(sent) if line.endswith("/abort")]

    assert ended.status == "ended"
    assert len(refused.hits) == 2
    assert sent.index(removal) > aborts[2], "the third one was answered"
    await nothing_runs(twin)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("fault", FAULTS)
async def test_any_step_of_an_end_may_fail(
    bridge: Bridge, twin: Twin, project: Path, step: str, fault: str
) -> None:
    session_id = await bridge.begin("HANG", project)
    await streaming(twin)
    method, path = STEPS[step]
    planned = twin.fail(FAULTS[fault], method=method, path=path)
    ended = await settled_end(bridge, session_id)

    assert (ended.status, ended.structured["action"]) == ("ended", "delete")
    assert planned.hits
    assert twin.world.sessions == {}
    assert twin.asks.pending == {}
    await nothing_runs(twin)


async def test_an_end_while_the_prompt_is_still_resolved_waits_for_it(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """An abort before the message exists is lost, and the turn starts afterwards (facts 4.6)."""
    twin.pace.resolving_s = 1.0
    session_id = await bridge.begin("HANG", project)
    ended = await bridge.end(session_id, action="archive")

    assert ended.status == "ended"
    await nothing_runs(twin)


async def test_a_timeout_while_the_prompt_is_still_resolved_waits_for_it(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    twin.pace.resolving_s = 2.0
    answer = await bridge.start("HANG", project, timeout_seconds=1)

    assert (answer.status, answer.is_error) == ("timeout", True)
    await nothing_runs(twin)


@pytest.mark.parametrize("prompt", ["HANG", "SLOW:400,20", "STATUS:503"])
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


@pytest.mark.parametrize("fault", ["503", "reset", "lost", "truncated"])
async def test_a_stop_whose_abort_fails_is_repeated(
    bridge: Bridge, twin: Twin, project: Path, fault: str
) -> None:
    planned = twin.fail(FAULTS[fault], path=ABORT, times=4)
    answer = await bridge.start("HANG", project, timeout_seconds=1)

    assert answer.status == "timeout"
    assert planned.hits
    await nothing_runs(twin)


@pytest.mark.parametrize("fault", ["503", "reset", "lost", "truncated"])
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


@pytest.mark.parametrize("part_s", [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3])
async def test_a_stop_that_meets_the_end_of_the_turn_is_told_as_one_of_both(
    bridge: Bridge, twin: Twin, project: Path, part_s: float
) -> None:
    """Case 42 and facts 4.7: either way, once, and unchanged afterwards; the message decides."""
    call = asyncio.create_task(bridge.start("SLOW:4,1", project))  # 20 words a second: 0.2 s
    await streaming(twin)
    session_id = only_session(twin)
    await asyncio.wait({call}, timeout=part_s)
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
    settled = await bridge.settled(session_id)
    later = await bridge.status(session_id)
    newest = twin.world.messages(session_id)[-1]["info"]
    expected = "cancelled" if "error" in newest else "completed"

    assert (settled.status, later.status) == (expected, expected)


@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5, 6])
async def test_an_opencode_that_dies_in_an_end_takes_nothing_with_it(
    bridge: Bridge, twin: Twin, project: Path, nth: int
) -> None:
    """At each request of the end in turn: what was accepted is finished when it is back."""
    session_id = await bridge.begin("HANG", project)
    await streaming(twin)
    twin.fail(Restart(), nth=nth)
    ended = await settled_end(bridge, session_id)

    assert ended.status == "ended"
    assert twin.world.sessions == {}
    assert (await bridge.end(session_id)).status == "not_found"


async def test_an_end_by_another_server_of_ours_is_seen_by_the_call_that_waits(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    owner, other = await bridges.attached(), await bridges.attached()
    call = asyncio.create_task(owner.start("HANG", project))
    await streaming(twin)
    session_id = only_session(twin)
    ended = await other.end(session_id)
    answer = await call

    assert (ended.status, ended.structured["abortedRunningTurn"]) == ("ended", True)
    assert answer.status == "cancelled"
    assert await owner.listed() == {}
    await nothing_runs(twin)


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


async def test_ids_of_another_kind_reach_nothing(bridge: Bridge, twin: Twin) -> None:
    """Case 44: refused or not found, and OpenCode hears nothing at all."""
    tools = {"opencode-reply": {"prompt": "SAY:x"}, "opencode-status": {}, "opencode-end": {}}
    for (tool, more), wrong in itertools.product(tools.items(), HOSTILE):
        answer = await bridge.call(tool, sessionId=wrong, **more)

        assert (
            answer.error in {"SESSION_NOT_FOUND", "INVALID_ARGUMENT"}
            or answer.status == "not_found"
        )
    assert twin.requests == []

"""`opencode-cancel` on the twin: a request is not an outcome (contract §2.2).

The witness is the twin itself: what was sent to it, and what runs in it afterwards.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.polling import eventually
from tests.twin import Hang, Pace, Reset, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Answer, Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin
    from tests.twin.faults import Fault

ENDLESS = "SLOW:100000,50"
SLEEP = 'TOOL:{"name":"bash","args":{"command":"sleep 600","description":"wait"}}'
ASK = 'TOOL:{"name":"bash","args":{"command":"rm x","description":"remove"}}'
ABORT = r"/abort$"


async def cancel(bridge: Bridge, session_id: str, **more: object) -> Answer:
    return await bridge.call("opencode-cancel", sessionId=session_id, **more)


async def running(twin: Twin, session_id: str) -> None:
    """Wait until the session is busy in OpenCode's eyes."""

    async def check() -> bool:
        run = twin.runs.running.get(session_id)
        return run is not None and run.status is not None

    await eventually(check, what=f"{session_id} runs")


def aborts(twin: Twin, since: int = 0) -> int:
    return sum(line.endswith("/abort") for line in twin.lines(since))


def verdict(answer: Answer) -> tuple[Any, ...]:
    said = answer.structured
    return tuple(said[name] for name in ("status", "accepted", "done", "alreadyDone", "cancelled"))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(ENDLESS, id="text-stream"),
        pytest.param(SLEEP, id="shell-command"),
        pytest.param("STATUS:503", id="provider-back-off"),
        pytest.param("HANG", id="silent-provider"),
    ],
)
async def test_a_running_turn_is_stopped_and_the_session_stays(
    bridge: Bridge, twin: Twin, project: Path, script: str
) -> None:
    session_id = await bridge.begin(script, project)
    await running(twin, session_id)
    answer = await cancel(bridge, session_id, wait_ms=10_000)

    assert verdict(answer) == ("cancelled", True, True, False, True), answer.text
    assert not answer.is_error
    assert "opencode-reply" in answer.structured["nextAction"]
    assert not twin.runs.running
    assert not twin.shells
    again = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:alive")
    assert (again.status, "alive" in again.text) == ("completed", True)


async def test_a_pending_permission_is_rejected_with_its_turn(
    bridges: Bridges, twin: Twin, tmp_path: Path
) -> None:
    """OpenCode: an abort leaves the request listed (facts 5.5)."""
    project = tmp_path / "asking"
    project.mkdir()
    rules = {"permission": {"bash": "ask"}}
    (project / "opencode.json").write_text(json.dumps(rules), encoding="utf-8")
    bridge = await bridges.attached()
    session_id = await bridge.begin(ASK, project, approval_policy="caller")

    async def asks() -> bool:
        return bool(twin.asks.of("permission", str(project)))

    await eventually(asks, what="the permission is asked for")
    answer = await cancel(bridge, session_id, wait_ms=10_000)
    assert verdict(answer) == ("cancelled", True, True, False, True), answer.text
    assert not twin.asks.of("permission", str(project))
    assert [call["status"] for call in answer.structured["toolCalls"]] == ["cancelled"]


async def test_an_idle_session_gets_no_abort_and_keeps_its_end(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Case B03: what is finished is never called cancelled."""
    done = await bridge.start("SAY:the answer", project)
    before = len(twin.requests)
    answer = await cancel(bridge, done.session_id)
    assert verdict(answer) == ("completed", False, True, True, False)
    assert "the answer" in answer.text
    assert not answer.is_error
    assert aborts(twin, before) == 0
    assert (await bridge.status(done.session_id)).status == "completed"


async def test_an_older_turn_is_answered_with_its_own_end_and_nothing_is_sent(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Contract 2.2: a late Stop must not kill the next turn."""
    first = await bridge.start("SAY:one", project)
    second = await bridge.call(
        "opencode-reply", sessionId=first.session_id, prompt=ENDLESS, wait_seconds=0
    )
    await running(twin, first.session_id)
    before = len(twin.requests)
    answer = await cancel(bridge, first.session_id, turnId=first.structured["turnId"])
    assert verdict(answer) == ("completed", False, True, True, False)
    assert answer.structured["turn"] == 1
    assert aborts(twin, before) == 0
    assert first.session_id in twin.runs.running

    answer = await cancel(
        bridge, first.session_id, turnId=second.structured["turnId"], wait_ms=10_000
    )
    assert verdict(answer) == ("cancelled", True, True, False, True)


async def test_a_turn_that_is_none_of_the_session_is_named(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = await bridge.begin(ENDLESS, project)
    before = len(twin.requests)
    answer = await cancel(bridge, session_id, turnId="msg_other")
    assert (answer.is_error, answer.error) == (True, "TURN_NOT_FOUND")
    assert "msg_other" in answer.text
    assert aborts(twin, before) == 0


async def test_two_at_once_are_one_stop_with_two_answers(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = await bridge.begin(ENDLESS, project)
    await running(twin, session_id)
    answers = await asyncio.gather(*(cancel(bridge, session_id, wait_ms=10_000) for _ in range(2)))
    for answer in answers:
        assert answer.structured["done"] is True
        assert answer.structured["cancelled"] is True


async def test_without_a_wait_it_returns_once_the_abort_was_sent(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = await bridge.begin(ENDLESS, project)
    await running(twin, session_id)
    hang = twin.fail(Hang(), method="POST", path=ABORT)
    answer = await cancel(bridge, session_id, wait_ms=0)
    assert verdict(answer) == ("stopping", True, False, False, None)
    assert "opencode-status" in answer.structured["nextAction"]
    assert aborts(twin) == 1
    hang.release()
    assert (await bridge.settled(session_id)).status == "cancelled"


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
    await eventually_quiet(twin, session_id)


async def test_a_turn_that_begins_after_the_abort_is_aborted_again(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """OpenCode: some time lies between the user message and busy; an abort in it may be lost."""
    twin.pace.starting_s = 0.3
    session_id = await bridge.begin(ENDLESS, project)
    answer = await cancel(bridge, session_id, wait_ms=10_000)
    assert verdict(answer) == ("cancelled", True, True, False, True), answer.text
    await eventually_quiet(twin, session_id)


async def test_a_turn_that_finishes_as_stop_is_pressed_keeps_its_own_end(
    bridge: Bridge, project: Path
) -> None:
    """Contract 2.2: losing the race is not an error, whoever wins it (facts 4.7)."""
    for _ in range(8):
        session_id = await bridge.begin("SAY:done", project)
        answer = await cancel(bridge, session_id, wait_ms=10_000)
        assert answer.structured["done"] is True, answer.text
        assert answer.status in {"completed", "cancelled"}
        assert answer.structured["cancelled"] is (answer.status == "cancelled")
        assert not answer.is_error
        assert (await bridge.status(session_id)).status == answer.status


async def test_the_call_that_watches_the_turn_gets_its_end(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    watching = asyncio.create_task(bridge.start(ENDLESS, project))

    async def begun() -> bool:
        return bool(twin.runs.running)

    await eventually(begun, what="the turn runs")
    (session_id,) = twin.runs.running
    await cancel(bridge, session_id, wait_ms=0)
    answer = await asyncio.wait_for(watching, 10)
    assert answer.status == "cancelled"
    assert not answer.is_error


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


async def eventually_quiet(twin: Twin, session_id: str) -> None:
    async def check() -> bool:
        return session_id not in twin.runs.running

    await eventually(check, what=f"{session_id} is quiet")

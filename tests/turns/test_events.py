"""The event stream only wakes; whatever it does, the answer comes, and in time."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.polling import eventually
from tests.turns.reading import held, streaming, submissions
from tests.twin import Body, Reset, Restart, Silence, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.twin import Twin
    from tests.twin.faults import Fault

EVENTS = r"^/global/event$"
#: case B23: how long after the true end a blocking call may still wait
_ANSWERED_WITHIN_S = 10.0


async def test_a_stream_that_never_speaks_delays_the_answer_but_does_not_withhold_it(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Case B23: accepted, and then nothing; status is polled, and a second stream is tried."""
    silent = twin.fail(Silence(), path=EVENTS)
    began = time.monotonic()
    answer = await bridge.start("SAY:heard", project)
    took_s = time.monotonic() - began

    async def again() -> bool:
        return len([seen for seen in twin.requests if seen.path == "/global/event"]) > 1

    assert len(silent.hits) == 1
    assert (answer.status, "heard" in answer.text) == ("completed", True)
    assert took_s < _ANSWERED_WITHIN_S
    await eventually(again, within_s=20 - took_s, what="another event stream is tried")


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Status(503, retry_after="1"), id="503"),
        pytest.param(Status(404), id="404"),
        pytest.param(Reset(), id="reset"),
        pytest.param(Body(b"<html>no", "text/html"), id="html"),
        pytest.param(Body(b"no events at all", "text/event-stream"), id="garbage"),
        pytest.param(Body(b'data: {"payload":\n\n', "text/event-stream"), id="half-an-event"),
        pytest.param(Silence(), id="silent"),
    ],
)
async def test_without_any_events_a_turn_is_answered_all_the_same(
    bridge: Bridge, twin: Twin, project: Path, fault: Fault
) -> None:
    twin.fail(fault, path=EVENTS, times=None)
    with held(twin):
        call = asyncio.create_task(bridge.start("SAY:heard", project))
        await streaming(twin)
    await twin.runs.settled(next(iter(twin.world.sessions)))
    ended = time.monotonic()
    answer = await call

    assert (answer.status, "heard" in answer.text) == ("completed", True)
    assert time.monotonic() - ended < _ANSWERED_WITHIN_S


async def test_a_stream_that_is_dropped_in_a_turn_loses_nothing(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """The end falls into the gap: after each reconnect, what was missed is read (facts 3.1)."""
    with held(twin):
        call = asyncio.create_task(bridge.start("SAY:heard", project))
        await streaming(twin)
        refused = twin.fail(Status(503), path=EVENTS, times=None)
        twin.drop_streams()
    await twin.runs.settled(next(iter(twin.world.sessions)))
    ended = time.monotonic()
    refused.release()
    answer = await call

    assert (answer.status, "heard" in answer.text) == ("completed", True)
    assert time.monotonic() - ended < _ANSWERED_WITHIN_S
    assert len(submissions(twin)) == 1


async def test_a_stream_that_breaks_again_and_again_loses_nothing(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    call = asyncio.create_task(bridge.start("SLOW:40,1\nSAY:heard", project))
    await streaming(twin)

    async def drop() -> bool:
        twin.drop_streams()
        return call.done()

    await eventually(drop, within_s=20, what="an answer")
    answer = await call

    assert (answer.status, "w39" in answer.text) == ("completed", True)


async def test_two_idles_and_what_comes_after_them_are_one_end(
    bridge: Bridge, project: Path
) -> None:
    """OpenCode: a failed turn says "idle" twice, and goes on talking (facts 3.5, 3.8)."""
    failed = await bridge.start("STATUS:401", project)
    reply = await bridge.call("opencode-reply", sessionId=failed.session_id, prompt="SAY:on")
    status = await bridge.status(failed.session_id)

    assert (failed.status, failed.structured["turn"]) == ("failed", 1)
    assert (reply.status, reply.structured["turn"]) == ("completed", 2)
    assert (status.status, status.structured["turn"]) == ("completed", 2)


async def test_another_sessions_idle_ends_nothing(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    slow = await bridge.begin("HANG", project)
    await streaming(twin)
    await bridge.start("SAY:quick", project)
    listed = await bridge.listed()

    assert (await bridge.status(slow)).status == "running"
    assert listed[slow] == "running"


async def test_an_opencode_that_lost_its_memory_in_a_turn_is_told_as_it_is(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Facts 9.1-9.3: nothing resumes, half a message stays for ever, a new prompt works."""
    call = asyncio.create_task(bridge.start("SLOW:400,1\nSAY:never", project))
    await streaming(twin)
    await twin.restart()
    answer = await call
    if answer.status in {"running", "unknown"}:
        answer = await bridge.settled(answer.session_id)
    reply = await bridge.call("opencode-reply", sessionId=answer.session_id, prompt="SAY:on")

    assert (answer.status, answer.is_error) == ("failed", True)
    assert answer.error == "TURN_INCOMPLETE"
    assert (reply.status, "on" in reply.text) == ("completed", True)
    assert len(submissions(twin)) == 2


async def test_a_restart_takes_the_asks_along(bridge: Bridge, twin: Twin, project: Path) -> None:
    """Facts 9.1: what waited for leave is gone, and so is its turn."""
    call = 'TOOL:{"name":"question","args":{"questions":[{"question":"Which?","header":"Q",'
    asks = call + '"options":[{"label":"a","description":"a"}]}]}}'
    waiting = await bridge.start(asks, project, approval_policy="caller")
    twin.fail(Restart(), path=r"/session/status$")
    settled = await bridge.settled(waiting.session_id)

    assert waiting.status == "waiting_for_approval"
    assert settled.status == "failed"
    assert twin.asks.pending == {}
    assert {call["status"] for call in settled.structured["toolCalls"]} == {"cancelled"}

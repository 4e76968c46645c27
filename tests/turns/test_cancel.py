"""`opencode-cancel` on the twin: a request is not an outcome (contract §2.2).

The witness is the twin itself: what was sent to it, and what runs in it afterwards.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from tests.support.polling import eventually
from tests.turns.cancels import ENDLESS, aborts, cancel, running, verdict
from tests.twin import Body, Hang

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin

SLEEP = 'TOOL:{"name":"bash","args":{"command":"sleep 600","description":"wait"}}'
ASK = 'TOOL:{"name":"bash","args":{"command":"rm x","description":"remove"}}'
ABORT = r"/abort$"


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


async def test_an_older_turn_without_an_answer_does_not_get_that_of_the_next(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """OpenCode: a wrong model leaves a user message and nothing else (facts 2.4)."""
    offered = b'{"providers":[{"id":"nosuch","models":{"none":{"id":"none"}}}],"default":{}}'
    twin.fail(Body(offered), path=r"^/config/providers$", times=2)
    first = await bridge.start("SAY:x", project, model="nosuch/none")
    model = {"model": "scripted/one"}
    await bridge.call("opencode-reply", sessionId=first.session_id, prompt="SAY:second", **model)
    answer = await cancel(bridge, first.session_id, turnId=first.structured["turnId"])
    assert verdict(answer) == ("failed", False, True, True, False), answer.text
    assert "second" not in answer.text


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

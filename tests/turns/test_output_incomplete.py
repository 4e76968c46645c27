"""`opencode-output` where not all is there: of a turn that runs, that is gone, or is too large."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.engine import interval, observing
from opencode_mcp.opencode import whole_messages
from tests.support.polling import eventually
from tests.turns.outputs import echo, output
from tests.turns.reading import always_busy, streaming
from tests.twin import Hang, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.twin import Twin


async def test_a_running_turn_shows_what_there_is_and_says_that_it_is_not_all(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = await bridge.begin(f"SAY:so far\n{echo('x')}\nTHEN\nHANG", project)

    async def second_step() -> bool:
        return len(twin.model.requests) == 2

    await eventually(second_step, what="the second step runs")
    said = await output(bridge, session_id)
    log = await output(bridge, session_id, section="tool-calls")
    structured = await output(bridge, session_id, section="structured-output")
    diff = await output(bridge, session_id, section="diff")

    assert (said.text, said.structured["partial"]) == ("so far", True)
    assert (log.structured["toolCallCount"], log.structured["partial"]) == (1, True)
    assert (structured.is_error, structured.error) == (True, "OUTPUT_NOT_READY")
    assert structured.structured["error"]["retryable"] is True
    assert diff.error == "OUTPUT_UNAVAILABLE"  # without git there is none, now or later
    assert (await bridge.status(session_id)).status == "running"


async def test_before_anything_was_said_there_is_nothing_yet(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = await bridge.begin("HANG", project)
    await streaming(twin)
    said = await output(bridge, session_id)
    assert (said.is_error, said.structured["total"], said.structured["partial"]) == (False, 0, True)


async def test_an_answer_after_which_opencode_says_busy_may_not_be_all(
    bridge: Bridge, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case B07: a further step may come."""
    monkeypatch.setattr(observing, "BUSY_SETTLE_S", 600.0)
    session_id = await bridge.begin("SAY:it seems", project)
    busy = always_busy(twin, session_id)

    async def is_answered() -> bool:
        return any(m["info"].get("finish") == "stop" for m in twin.world.messages(session_id))

    await eventually(is_answered, what="the answer is complete")
    early = await output(bridge, session_id)
    busy.release()
    await bridge.settled(session_id)
    late = await output(bridge, session_id)

    assert (early.text, early.structured["partial"]) == ("it seems", True)
    assert (late.text, late.structured["partial"]) == ("it seems", False)


async def test_a_turn_that_there_is_not_is_told_with_those_there_are(
    bridge: Bridge, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    answer = await output(bridge, session_id, 2)
    assert (answer.is_error, answer.error) == (True, "TURN_NOT_FOUND")
    assert "its turns are 1 to 1" in answer.text
    assert session_id in answer.text


async def test_a_turn_that_left_no_text_or_no_structured_output_says_so(
    bridge: Bridge, project: Path
) -> None:
    session_id = (await bridge.start(f"{echo('x')}\nTHEN\nEMPTY", project)).session_id
    said = await output(bridge, session_id)
    structured = await output(bridge, session_id, section="structured-output")
    assert (said.error, "tool-calls" in said.text) == ("OUTPUT_UNAVAILABLE", True)
    assert (structured.error, "output-schema" in structured.text) == ("OUTPUT_UNAVAILABLE", True)


async def test_the_output_of_an_ended_session_is_gone_with_it(
    bridge: Bridge, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    pin = (await output(bridge, session_id)).structured["snapshotId"]
    await bridge.end(session_id)
    for more in ({}, {"snapshot_id": pin}):
        answer = await output(bridge, session_id, **more)
        assert (answer.is_error, answer.error) == (True, "SESSION_NOT_FOUND")
        assert "ended at" in answer.text


async def test_a_session_that_was_deleted_in_opencode_has_no_output(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    twin.world.delete(session_id)
    await bridge.start("SAY:y", project)  # known here, so that a 404 means deleted
    answer = await output(bridge, session_id)
    assert (answer.is_error, answer.error) == (True, "OUTPUT_UNAVAILABLE")
    assert "deleted there" in answer.text


async def test_a_session_that_opencode_does_not_know_may_be_elsewhere(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Nobody said that it was deleted: it may be another OpenCode, with other data."""
    session_id = (await bridge.start("SAY:x", project)).session_id
    del twin.world.sessions[session_id]
    answer = await output(bridge, session_id)
    assert (answer.is_error, answer.error) == (True, "OPENCODE_UNAVAILABLE")
    assert "other data" in answer.text


async def test_a_session_that_ends_while_it_is_read_is_told_as_ended(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    hung = twin.fail(Hang(), path=rf"{session_id}/message$")
    call = asyncio.create_task(output(bridge, session_id))
    await hung.reached.wait()
    ended = await bridge.end(session_id)
    hung.release()
    answer = await call

    assert ended.status == "ended"
    assert (answer.is_error, answer.error) == (True, "SESSION_NOT_FOUND")
    assert "ended just now" in answer.text


async def test_a_turn_that_opencode_never_took_left_nothing(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    twin.fail(Status(400), path=r"/prompt_async$")
    refused = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:never")
    more = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:y")
    answer = await output(bridge, session_id, 2)

    assert (refused.is_error, more.structured["turn"]) == (True, 3)
    assert (answer.error, "never took" in answer.text) == ("OUTPUT_UNAVAILABLE", True)
    assert (await output(bridge, session_id, 1)).text == "x"


@pytest.mark.parametrize("turn", [1, 2])
async def test_a_turn_that_was_taken_out_of_the_history_is_told_as_gone(
    bridge: Bridge, twin: Twin, project: Path, turn: int
) -> None:
    """By a revert of somebody else's: what stands around it is not taken for it."""
    session_id = (await bridge.start("SAY:one", project)).session_id
    for word in ("two", "three"):
        await bridge.call("opencode-reply", sessionId=session_id, prompt=f"SAY:{word}")
    history = twin.world.messages(session_id)
    del history[2 * turn - 2 : 2 * turn]
    answer = await output(bridge, session_id, turn)
    assert (answer.is_error, answer.error) == (True, "OUTPUT_UNAVAILABLE"), answer.text
    assert "history" in answer.text
    assert (await output(bridge, session_id, 3)).text == "three"


async def test_a_prompt_too_large_to_read_does_not_hide_what_came_of_it(
    bridge: Bridge, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = (await bridge.start(f"{'x' * 90_000}\nSAY:the answer", project)).session_id
    monkeypatch.setattr(whole_messages, "MESSAGES_MAX_BYTES", 60_000)
    assert (await output(bridge, session_id)).text == "the answer"


async def test_a_message_too_large_behind_a_turn_is_told_as_too_large(
    bridge: Bridge, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no way past it: the cursor to what is older comes with it (facts 11.1)."""
    session_id = (await bridge.start("SAY:first", project)).session_id
    for script in (f"{echo('x' * 90_000)}\nTHEN\nSAY:not the first's", "SAY:third"):
        await bridge.call("opencode-reply", sessionId=session_id, prompt=script)
    monkeypatch.setattr(whole_messages, "MESSAGES_MAX_BYTES", 60_000)
    answer = await output(bridge, session_id, 1)
    assert (answer.is_error, answer.error) == (True, "UPSTREAM_RESPONSE_TOO_LARGE")


async def test_an_answer_cut_at_the_models_limit_is_partial(bridge: Bridge, project: Path) -> None:
    session_id = (await bridge.start("SAY:half of it\nFINISH:length", project)).session_id
    answer = await output(bridge, session_id)
    assert (answer.text, answer.structured["partial"]) == ("half of it", True)


async def test_an_opencode_that_does_not_answer_is_told_as_such(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    await twin.refuse()
    answer = await output(bridge, session_id)
    await twin.listen()
    assert (answer.is_error, answer.error) == (True, "OPENCODE_UNAVAILABLE")
    assert (await output(bridge, session_id)).text == "x"


async def test_a_message_too_large_to_read_costs_only_what_stands_before_it(
    bridge: Bridge, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is out of reach (facts 11.1). A later prompt that never got there changes nothing."""
    script = f"{echo('x' * 90_000)}\nTHEN\n{echo('small')}\nTHEN\nSAY:the answer"
    session_id = (await bridge.start(script, project)).session_id
    twin.fail(Status(400), path=r"/prompt_async$")
    await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:never")
    monkeypatch.setattr(whole_messages, "MESSAGES_MAX_BYTES", 60_000)
    said = await output(bridge, session_id)
    log = await output(bridge, session_id, section="tool-calls")

    assert (said.text, said.structured["partial"]) == ("the answer", False)
    assert (log.structured["toolCallCount"], log.structured["partial"]) == (1, True)
    assert "echo small" in log.text


async def test_what_later_turns_left_takes_no_room_from_an_earlier_one(
    bridge: Bridge, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interval, "MAX_CHARS", 3_000)
    monkeypatch.setattr(interval, "MAX_MESSAGES", 5)
    session_id = (await bridge.start(f"{echo('first')}\nTHEN\nSAY:x", project)).session_id
    steps = "\nTHEN\n".join(echo(f"{n}-" + "x" * 1_000) for n in range(6))
    await bridge.call("opencode-reply", sessionId=session_id, prompt=f"{steps}\nTHEN\nSAY:y")
    log = await output(bridge, session_id, 1, section="tool-calls")
    later = await output(bridge, session_id, 2, section="tool-calls")

    assert "output:\nfirst\n" in log.text
    assert (log.structured["toolCallCount"], log.structured["partial"]) == (1, False)
    assert (later.structured["toolCallCount"], later.structured["partial"]) == (4, True)


async def test_of_a_turn_beyond_the_bound_the_oldest_details_are_left_out(
    bridge: Bridge, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interval, "MAX_CHARS", 3_000)
    monkeypatch.setattr(whole_messages, "MAX_DETAIL_CHARS", 1_500)
    steps = [echo(f"{n}-" + "x" * 1_000) for n in range(4)]
    script = "\nTHEN\n".join([*steps, echo("y" * 4_000), "SAY:the end"])
    session_id = (await bridge.start(script, project)).session_id
    log = await output(bridge, session_id, section="tool-calls")
    said = await output(bridge, session_id)

    assert log.structured["partial"] is True
    assert log.text.count("bash · completed") == 5, "each call is listed all the same"
    assert "more characters were not read" in log.text
    assert '"command": "echo 0-' not in log.text
    assert (said.text, said.structured["partial"]) == ("the end", False)

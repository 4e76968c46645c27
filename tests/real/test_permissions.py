"""Who answers when an agent asks, on the real OpenCode: nobody, or the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.real.support.asks import HELLO, warned
from tests.real.support.model_requests import outputs
from tests.real.support.scripts import ENDLESS, ask_which, bash, subagent
from tests.support.polling import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.bridges import RealBridges
    from tests.real.support.processes import Marker
    from tests.real.support.witness import Witness
    from tests.support.bridge import Answer, Bridge


async def asked(witness: Witness, folder: Path) -> str:
    """Wait until something of the folder waits, and return its id."""

    async def check() -> list[dict[str, object]]:
        return [*await witness.permissions(folder), *await witness.questions(folder)]

    return str((await eventually(check, what="something waits"))[0]["id"])


# --- never


async def test_never_rejects_at_once_with_a_reason_and_the_turn_goes_on(
    bridge: Bridge, witness: Witness, asking: Path
) -> None:
    """Case B13: with policy deny no prompt appears."""
    answer = await bridge.start(f"{HELLO}\nTHEN\nSAY:without it", asking, wait_seconds=40)

    assert (answer.status, "without it" in answer.text) == ("completed", True), answer.text
    (message,) = warned(answer)
    assert "approval policy is never" in message
    assert "bash echo hello" in message
    assert "approval policy is never" in outputs(witness), "the model was told why"
    assert not await witness.permissions(asking)


async def test_never_rejects_although_no_call_watches(
    bridge: Bridge, witness: Witness, asking: Path
) -> None:
    session_id = await bridge.begin(HELLO, asking)
    await witness.answered(session_id)

    assert len(warned(await bridge.settled(session_id))) == 1


async def test_never_tells_of_the_asks_that_one_rejection_took_along(
    bridge: Bridge, asking: Path
) -> None:
    """OpenCode: the others of a session are rejected without a word, and the turn ends (5.4)."""
    prompt = f"{bash('echo one')}\n{bash('echo two')}"
    answer = await bridge.start(prompt, asking, wait_seconds=40)

    assert (answer.status, answer.is_error) == ("failed", True), answer.text
    told = " ".join(warned(answer))
    assert "bash echo one" in told
    assert "bash echo two" in told


async def test_never_takes_the_question_tool_away(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    """A rejected question would end the turn (facts 5.8)."""
    answer = await bridge.start(f"{ask_which()}\nTHEN\nSAY:decided", project, wait_seconds=40)

    assert (answer.status, "decided" in answer.text) == ("completed", True), answer.text
    request = witness.model.last_request
    assert request is not None
    assert "question" not in request.tools


async def test_a_rejection_is_told_by_who_only_read_the_history(
    bridge: Bridge, bridges: RealBridges, asking: Path
) -> None:
    env = bridges.attach_env()
    first = await bridges.open(env)
    session_id = (await first.start(HELLO, asking, wait_seconds=40)).session_id
    await first.close()
    later = await (await bridges.open(env)).status(session_id)

    assert later.status == "completed"
    assert "approval policy is never" in warned(later)[0]
    assert (await bridge.status(session_id)).error == "SESSION_NOT_FOUND"


# --- caller


async def waiting(bridge: Bridge, prompt: str, folder: Path, **more: object) -> Answer:
    """Start a session of policy caller and return the answer in which it waits."""
    answer = await bridge.start(prompt, folder, wait_seconds=40, approval_policy="caller", **more)
    assert (answer.status, answer.is_error) == ("waiting_for_approval", False), answer.text
    return answer


async def approve(bridge: Bridge, told: Answer, **more: object) -> Answer:
    """Answer the first ask that a result tells of."""
    return await bridge.call(
        "opencode-approve",
        sessionId=told.session_id,
        approvalId=told.structured["pendingApprovals"][0]["id"],
        **more,
    )


async def test_a_caller_allows_once_and_may_repeat_itself(bridge: Bridge, asking: Path) -> None:
    told = await waiting(bridge, f"{HELLO}\nTHEN\nSAY:said it", asking)
    (pending,) = told.structured["pendingApprovals"]
    assert (pending["kind"], pending["patterns"]) == ("permission", ["echo hello"])
    assert pending["askedAt"] < pending["deadlineAt"]
    assert "opencode-approve" in told.structured["hint"]

    allowed = await approve(bridge, told, decision="allow")
    again = await approve(bridge, told, decision="allow")
    after = await bridge.settled(told.session_id)
    late = await approve(bridge, told, decision="reject")

    assert allowed.structured["kind"] == "turn"
    assert allowed.status in {"running", "completed"}
    assert again.status in {"running", "completed"}
    assert (after.status, "said it" in after.text) == ("completed", True), after.text
    assert after.structured["toolCalls"][0]["status"] == "completed"
    assert late.error == "APPROVAL_NOT_FOUND"


async def test_a_caller_rejects_with_feedback_and_the_turn_goes_on(
    bridge: Bridge, witness: Witness, asking: Path
) -> None:
    told = await waiting(bridge, f"{HELLO}\nTHEN\nSAY:as you like", asking)
    await approve(bridge, told, decision="reject", feedback="say goodbye")
    after = await bridge.settled(told.session_id)

    assert (after.status, "as you like" in after.text) == ("completed", True), after.text
    assert "say goodbye" in outputs(witness)


async def test_a_caller_rejects_without_feedback_and_the_turn_ends(
    bridge: Bridge, witness: Witness, asking: Path
) -> None:
    """Case B13: answering reject ends the turn."""
    told = await waiting(bridge, f"{HELLO}\nTHEN\nSAY:never said", asking)
    await approve(bridge, told, decision="reject")
    after = await bridge.settled(told.session_id)

    assert "never said" not in after.text
    assert not await witness.busy(asking)


async def test_a_caller_answers_a_question(bridge: Bridge, asking: Path) -> None:
    told = await waiting(bridge, f"{ask_which()}\nTHEN\nSAY:thanks", asking)
    (pending,) = told.structured["pendingApprovals"]
    assert pending["kind"] == "question"
    assert [o["label"] for o in pending["questions"][0]["options"]] == ["red", "blue"]

    missing = await approve(bridge, told, decision="allow")
    many = await approve(bridge, told, decision="allow", answers=[["red", "blue"]])
    feedback = await approve(bridge, told, decision="reject", feedback="no")
    await approve(bridge, told, decision="allow", answers=[["blue"]])
    after = await bridge.settled(told.session_id)

    assert {missing.error, many.error, feedback.error} == {"INVALID_ARGUMENT"}
    assert (after.status, "thanks" in after.text) == ("completed", True), after.text


async def test_a_caller_answers_the_ask_of_a_subagent(
    bridge: Bridge, witness: Witness, asking: Path
) -> None:
    told = await waiting(bridge, f"{subagent(HELLO)}\nTHEN\nSAY:both done", asking)
    (pending,) = told.structured["pendingApprovals"]
    assert pending["sessionId"] != told.session_id
    await approve(bridge, told, decision="allow")
    after = await bridge.settled(told.session_id)

    assert (after.status, "both done" in after.text) == ("completed", True), after.text
    (call,) = [
        part["state"]["status"]
        for message in await witness.messages(pending["sessionId"])
        for part in message["parts"]
        if part["type"] == "tool"
    ]
    assert call == "completed"


async def test_an_ask_of_a_subagent_is_rejected_too(bridge: Bridge, asking: Path) -> None:
    answer = await bridge.start(
        f"{subagent(HELLO)}\nTHEN\nSAY:parent goes on", asking, wait_seconds=40
    )

    assert (answer.status, "parent goes on" in answer.text) == ("completed", True), answer.text
    assert "bash echo hello" in warned(answer)[0]


async def test_what_nobody_answers_is_rejected_at_its_deadline(
    bridges: RealBridges, asking: Path
) -> None:
    bridge = await bridges.attached(APPROVAL_TIMEOUT_SECONDS="1")
    told = await waiting(bridge, f"{HELLO}\nTHEN\nSAY:too late", asking)
    after = await bridge.settled(told.session_id)

    assert (after.status, "too late" in after.text) == ("completed", True), after.text
    assert "nobody answered within 1 s" in warned(after)[0]


async def test_an_orphan_is_not_granted(
    bridge: Bridge, witness: Witness, asking: Path, marker: Marker
) -> None:
    """Case 24: OpenCode takes an answer to what an abort left behind with 200 (facts 5.5)."""
    told = await waiting(bridge, bash(marker.command), asking)
    await witness.abort(told.session_id)
    assert await witness.permissions(asking), "OpenCode leaves it listed"
    late = await approve(bridge, told, decision="allow")
    await witness.prompt(told.session_id, {"type": "text", "text": ENDLESS})
    later = await approve(bridge, told, decision="allow")

    assert (late.error, later.error) == ("APPROVAL_NOT_FOUND",) * 2
    assert await witness.permissions(asking), "nothing was sent"
    assert not await marker.alive()


async def test_an_ask_is_answered_only_where_callers_may(
    bridge: Bridge, witness: Witness, asking: Path
) -> None:
    told = await waiting(bridge, HELLO, asking)
    other = await bridge.start("SAY:ready", asking, wait_seconds=40)
    approval_id = told.structured["pendingApprovals"][0]["id"]

    for session_id, wanted, error in (
        (other.session_id, approval_id, "INVALID_ARGUMENT"),
        (told.session_id, "per_unknown", "APPROVAL_NOT_FOUND"),
        ("ses_unknown", approval_id, "SESSION_NOT_FOUND"),
    ):
        answer = await bridge.call(
            "opencode-approve", sessionId=session_id, approvalId=wanted, decision="allow"
        )
        assert answer.error == error, answer.text
    assert await asked(witness, asking) == approval_id

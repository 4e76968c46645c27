"""Who answers when an agent asks, on the real OpenCode: nobody, a person, or the caller."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, InputRequiredResult

from tests.real.support.person import Person, Thinker
from tests.real.support.scripts import ENDLESS, ask_which, bash, subagent
from tests.support.polling import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.bridges import RealBridges
    from tests.real.support.processes import Marker
    from tests.real.support.witness import Witness
    from tests.support.bridge import Answer, Bridge, Era

ERAS = ("legacy", "auto")
_HELLO = bash("echo hello")


def warned(answer: Answer) -> list[str]:
    """Return what a result says of rejected asks."""
    warnings = answer.structured.get("warnings", [])
    return [one["message"] for one in warnings if one["code"] == "APPROVAL_REJECTED"]


def outputs(witness: Witness) -> str:
    """Return all that the newest request told the model."""
    request = witness.model.last_request
    assert request is not None
    return json.dumps(request.body["messages"])


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
    answer = await bridge.start(f"{_HELLO}\nTHEN\nSAY:without it", asking, wait_seconds=40)

    assert (answer.status, "without it" in answer.text) == ("completed", True), answer.text
    (message,) = warned(answer)
    assert "approval policy is never" in message
    assert "bash echo hello" in message
    assert "approval policy is never" in outputs(witness), "the model was told why"
    assert not await witness.permissions(asking)


async def test_never_rejects_although_no_call_watches(
    bridge: Bridge, witness: Witness, asking: Path
) -> None:
    session_id = await bridge.begin(_HELLO, asking)
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
    session_id = (await first.start(_HELLO, asking, wait_seconds=40)).session_id
    await first.close()
    later = await (await bridges.open(env)).status(session_id)

    assert later.status == "completed"
    assert "approval policy is never" in warned(later)[0]
    assert (await bridge.status(session_id)).error == "SESSION_NOT_FOUND"


# --- on-request


@pytest.mark.parametrize("mode", ERAS)
async def test_a_person_who_accepts_allows_it_once(
    bridges: RealBridges, asking: Path, mode: Era
) -> None:
    person = Person("accept", {"allow": True})
    bridge = await bridges.attached(mode=mode, person=person)
    script = f"{_HELLO}\nTHEN\n{_HELLO}\nTHEN\nSAY:said it twice"
    answer = await bridge.start(script, asking, wait_seconds=40, approval_policy="on-request")

    assert (answer.status, "said it twice" in answer.text) == ("completed", True), answer.text
    assert [call["status"] for call in answer.structured["toolCalls"]] == ["completed"] * 2
    assert len(person.messages) == 2, "`once`, so the second time it is asked again"
    assert "bash echo hello" in person.messages[0]
    assert not warned(answer)
    assert answer.structured["turn"] == 1
    assert len(await bridge.listed()) == 1, "a repeated call starts nothing"


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("person", "why"),
    [
        pytest.param(Person("decline"), "the person at the client declined", id="decline"),
        pytest.param(
            Person("accept", {"allow": False, "feedback": "use ls"}),
            "the person at the client declined",
            id="form-says-no",
        ),
        pytest.param(Person("cancel"), "no person is there", id="cancel"),
    ],
)
async def test_a_person_who_does_not_allow_it(  # noqa: PLR0913 - actors and parameters
    bridges: RealBridges, witness: Witness, asking: Path, *, mode: Era, person: Person, why: str
) -> None:
    bridge = await bridges.attached(mode=mode, person=person)
    script = f"{_HELLO}\nTHEN\nSAY:without it"
    answer = await bridge.start(script, asking, wait_seconds=40, approval_policy="on-request")

    assert (answer.status, "without it" in answer.text) == ("completed", True), answer.text
    assert why in warned(answer)[0]
    assert "feedback" in outputs(witness), "the model was told why"
    if person.content:
        assert "use ls" in outputs(witness)


@pytest.mark.parametrize("mode", ERAS)
async def test_a_person_answers_a_question(bridges: RealBridges, asking: Path, mode: Era) -> None:
    person = Person("accept", {"q1": "red"})
    bridge = await bridges.attached(mode=mode, person=person)
    script = f"{ask_which()}\nTHEN\nSAY:thanks"
    answer = await bridge.start(script, asking, wait_seconds=40, approval_policy="on-request")

    assert (answer.status, "thanks" in answer.text) == ("completed", True), answer.text
    assert "Which?" in person.messages[0]


async def test_a_client_that_can_ask_nobody_is_told_so(bridge: Bridge, asking: Path) -> None:
    """Case 25: no elicitation is sent; it is rejected at once, and `caller` is named."""
    answer = await bridge.start(_HELLO, asking, wait_seconds=40, approval_policy="on-request")

    assert answer.status == "completed", answer.text
    assert "approval-policy caller" in warned(answer)[0]


async def test_a_person_is_left_alone_when_the_call_stops_watching(
    bridges: RealBridges, witness: Witness, asking: Path
) -> None:
    thinker = Thinker()
    bridge = await bridges.attached(person=thinker)
    answer = await bridge.start(_HELLO, asking, wait_seconds=3, approval_policy="on-request")

    assert (answer.status, answer.is_error) == ("waiting_for_approval", False), answer.text
    assert "opencode-status" in answer.structured["hint"]
    await asyncio.wait_for(thinker.left_alone.wait(), 10)
    assert await witness.permissions(asking), "it still waits"
    assert (await bridge.end(answer.session_id)).status == "ended"


async def test_a_person_is_left_alone_when_somebody_else_answers(
    bridges: RealBridges, witness: Witness, asking: Path
) -> None:
    thinker = Thinker()
    bridge = await bridges.attached(person=thinker)
    calling = asyncio.ensure_future(
        bridge.start(_HELLO, asking, wait_seconds=40, approval_policy="on-request")
    )
    await asyncio.wait_for(thinker.asked.wait(), 30)
    await witness.clear_asks(asking)
    answer = await calling

    assert thinker.left_alone.is_set()
    assert answer.structured["output"]["state"] == "available"


async def test_a_person_is_left_alone_when_the_session_ends(
    bridges: RealBridges, witness: Witness, asking: Path
) -> None:
    thinker = Thinker()
    bridge = await bridges.attached(person=thinker)
    calling = asyncio.ensure_future(
        bridge.start(_HELLO, asking, wait_seconds=50, approval_policy="on-request")
    )
    await asyncio.wait_for(thinker.asked.wait(), 30)
    (session_id,) = await bridge.listed()
    ended = await bridge.end(session_id)
    answer = await asyncio.wait_for(calling, 10)

    assert (ended.status, ended.structured["rejectedPermissions"]) == ("ended", 1)
    assert answer.status == "cancelled", answer.text
    assert thinker.left_alone.is_set()
    await witness.ended(session_id, asking)


async def test_a_person_is_asked_once_although_two_calls_watch(
    bridges: RealBridges, asking: Path
) -> None:
    thinker = Thinker()
    bridge = await bridges.attached(person=thinker)
    session_id = await bridge.begin(_HELLO, asking, approval_policy="on-request")
    watching = [
        asyncio.ensure_future(
            bridge.call("opencode-status", sessionId=session_id, wait_seconds=wait_s)
        )
        for wait_s in (6, 6)
    ]
    answers = await asyncio.gather(*watching)

    assert [answer.status for answer in answers] == ["waiting_for_approval"] * 2
    assert len(thinker.messages) == 1
    assert (await bridge.end(session_id)).status == "ended"


async def test_a_repeated_call_goes_on_with_its_turn_in_another_process(
    bridges: RealBridges, witness: Witness, asking: Path
) -> None:
    """Contract 2.1: the key that seals its state is the database's, not the process's."""
    arguments = {
        "prompt": f"{_HELLO}\nTHEN\nSAY:said it",
        "cwd": str(asking),
        "approval-policy": "on-request",
        "wait-seconds": 40,
    }
    env = bridges.attach_env()
    first = await bridges.open(env, mode="auto", person=Person("accept"))
    second = await bridges.open(env, mode="auto", person=Person("accept"))
    asked_for = await first.client.session.call_tool(
        "opencode", arguments, allow_input_required=True
    )
    assert isinstance(asked_for, InputRequiredResult)
    assert asked_for.input_requests is not None
    (ask_id,) = asked_for.input_requests
    result = await second.client.session.call_tool(
        "opencode",
        arguments,
        input_responses={ask_id: ElicitResult(action="accept", content={"allow": True})},
        request_state=asked_for.request_state,
    )

    assert result.structured_content is not None
    assert result.structured_content["status"] == "completed", result.structured_content["content"]
    assert len(await witness.sessions(asking)) == 1, "no second prompt"
    assert len(await witness.user_texts(result.structured_content["sessionId"])) == 1


async def test_a_forged_state_is_refused(bridges: RealBridges, asking: Path) -> None:
    bridge = await bridges.attached(mode="auto", person=Person("accept"))
    with pytest.raises(MCPError):
        await bridge.client.session.call_tool(
            "opencode",
            {"prompt": "SAY:hello", "cwd": str(asking)},
            request_state='{"session": "ses_1", "turn": 1}',
        )
    assert not await bridge.listed()


@pytest.mark.parametrize("mode", ERAS)
async def test_a_person_is_asked_over_stdio(bridges: RealBridges, asking: Path, mode: Era) -> None:
    person = Person("accept", {"allow": True})
    bridge = await bridges.attached_process(mode=mode, person=person)
    answer = await bridge.start(_HELLO, asking, wait_seconds=40, approval_policy="on-request")

    assert answer.status == "completed", answer.text
    assert len(person.messages) == 1
    assert not warned(answer)


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
    told = await waiting(bridge, f"{_HELLO}\nTHEN\nSAY:said it", asking)
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
    told = await waiting(bridge, f"{_HELLO}\nTHEN\nSAY:as you like", asking)
    await approve(bridge, told, decision="reject", feedback="say goodbye")
    after = await bridge.settled(told.session_id)

    assert (after.status, "as you like" in after.text) == ("completed", True), after.text
    assert "say goodbye" in outputs(witness)


async def test_a_caller_rejects_without_feedback_and_the_turn_ends(
    bridge: Bridge, witness: Witness, asking: Path
) -> None:
    """Case B13: answering reject ends the turn."""
    told = await waiting(bridge, f"{_HELLO}\nTHEN\nSAY:never said", asking)
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
    told = await waiting(bridge, f"{subagent(_HELLO)}\nTHEN\nSAY:both done", asking)
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
        f"{subagent(_HELLO)}\nTHEN\nSAY:parent goes on", asking, wait_seconds=40
    )

    assert (answer.status, "parent goes on" in answer.text) == ("completed", True), answer.text
    assert "bash echo hello" in warned(answer)[0]


async def test_what_nobody_answers_is_rejected_at_its_deadline(
    bridges: RealBridges, asking: Path
) -> None:
    bridge = await bridges.attached(APPROVAL_TIMEOUT_SECONDS="1")
    told = await waiting(bridge, f"{_HELLO}\nTHEN\nSAY:too late", asking)
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
    told = await waiting(bridge, _HELLO, asking)
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

"""Who answers when an agent asks, on the real OpenCode: a person, for as long as a call watches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, InputRequiredResult

from tests.real.support.asks import HELLO, warned
from tests.real.support.model_requests import outputs
from tests.real.support.person import Person, Thinker
from tests.real.support.scripts import ask_which

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.bridges import RealBridges
    from tests.real.support.witness import Witness
    from tests.support.bridge import Bridge, Era

ERAS = ("legacy", "auto")


@pytest.mark.parametrize("mode", ERAS)
async def test_a_person_who_accepts_allows_it_once(
    bridges: RealBridges, asking: Path, mode: Era
) -> None:
    person = Person("accept", {"allow": True})
    bridge = await bridges.attached(mode=mode, person=person)
    script = f"{HELLO}\nTHEN\n{HELLO}\nTHEN\nSAY:said it twice"
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
    script = f"{HELLO}\nTHEN\nSAY:without it"
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
    answer = await bridge.start(HELLO, asking, wait_seconds=40, approval_policy="on-request")

    assert answer.status == "completed", answer.text
    assert "approval-policy caller" in warned(answer)[0]


async def test_a_person_is_left_alone_when_the_call_stops_watching(
    bridges: RealBridges, witness: Witness, asking: Path
) -> None:
    thinker = Thinker()
    bridge = await bridges.attached(person=thinker)
    answer = await bridge.start(HELLO, asking, wait_seconds=3, approval_policy="on-request")

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
        bridge.start(HELLO, asking, wait_seconds=40, approval_policy="on-request")
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
        bridge.start(HELLO, asking, wait_seconds=50, approval_policy="on-request")
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
    session_id = await bridge.begin(HELLO, asking, approval_policy="on-request")
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
        "prompt": f"{HELLO}\nTHEN\nSAY:said it",
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
    answer = await bridge.start(HELLO, asking, wait_seconds=40, approval_policy="on-request")

    assert answer.status == "completed", answer.text
    assert len(person.messages) == 1
    assert not warned(answer)

"""Answers to asks: which fit, and that a "yes" is only sent and believed where it means one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.engine.answers import Allow, Answer, Ask, Reject, check_fits, send_answer
from opencode_mcp.errors import InvalidArgumentError
from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.opencode_errors import OpencodeError, OpencodeFailedError, OpencodeRefusedError
from tests.engine.asks import permission, question
from tests.opencode.fake_server import FakeServer, QuickClock, resets, says

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.opencode.fake_server import Behaviour

_CLOSED = {"custom": False}
_MANY = {"multiple": True}


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (permission(), Allow()),
        (permission(), Reject()),
        (permission(), Reject("use ls")),
        (question(), Allow((("red",),))),
        (question(), Allow((("something else",),))),
        (question(_CLOSED), Allow((("blue",),))),
        (question(_MANY), Allow((("red", "blue"),))),
        (question({}, _MANY), Allow((("red",), ("blue", "green")))),
        (question(), Reject()),
    ],
)
def test_an_answer_that_fits_is_taken(ask: Ask, answer: Answer) -> None:
    check_fits(ask, answer)


@pytest.mark.parametrize(
    ("ask", "answer", "named"),
    [
        pytest.param(permission(), Allow((("red",),)), "answers", id="answers-to-a-permission"),
        pytest.param(question(), Allow(), "1 question;", id="none"),
        pytest.param(question({}, {}), Allow((("red",),)), "2 questions", id="one-of-two"),
        pytest.param(question(), Allow(((),)), "answers[0]", id="empty"),
        pytest.param(question(), Allow(((" ",),)), "answers[0]", id="blank"),
        pytest.param(question(), Allow((("red", "blue"),)), "one answer", id="two-of-one"),
        pytest.param(question(_CLOSED), Allow((("green",),)), "red, blue", id="not-offered"),
        pytest.param(question(), Reject("no"), "feedback", id="feedback-to-a-question"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_says_why(
    ask: Ask, answer: Answer, named: str
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        check_fits(ask, answer)
    assert named in str(refused.value)
    assert "green" not in str(refused.value), "an answer is never repeated"


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as running:
        yield running


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[OpencodeClient]:
    async with OpencodeClient(
        server.url, username="opencode", password=None, request_timeout_s=5.0, clock=QuickClock()
    ) as opened:
        yield opened


def call(status: str) -> Behaviour:
    """Show the message whose tool call asks, in this state."""
    info = {"id": "msg_1", "sessionID": "ses_1", "role": "assistant", "time": {"created": 1}}
    part = {"id": "prt_1", "type": "tool", "callID": "call_1", "state": {"status": status}}
    return says({"info": info, "parts": [part]})


RUNS = call("running")
YES = says(body=True)
GONE = says({"_tag": "PermissionNotFoundError", "requestID": "per_1", "message": "no"}, 404)
EMPTY = says([])
LISTED = says([json.loads(permission().model_dump_json(by_alias=True))])


async def answer(client: OpencodeClient, what: Answer, ask: Ask | None = None) -> bool:
    return await send_answer(client, ask or permission(), "/p", what, QuickClock())


@pytest.mark.parametrize(
    ("what", "script", "done"),
    [
        pytest.param(Allow(), [RUNS, YES, EMPTY], True, id="allowed"),
        pytest.param(Allow(), [call("error")], False, id="its-call-was-aborted"),
        pytest.param(Allow(), [GONE], False, id="its-message-is-gone"),
        pytest.param(Allow(), [RUNS, GONE], False, id="somebody-else-was-first"),
        pytest.param(Allow(), [RUNS, YES, LISTED, EMPTY], True, id="listed-a-moment-longer"),
        pytest.param(Allow(), [RUNS, resets, EMPTY], True, id="answer-lost-but-taken"),
        pytest.param(Allow(), [RUNS, resets, LISTED, YES, EMPTY], True, id="request-lost"),
        pytest.param(Reject("why"), [YES, EMPTY], True, id="rejected"),
        pytest.param(Reject(), [GONE], False, id="nothing-to-reject"),
    ],
)
async def test_an_answer_is_done_when_the_ask_is_gone_by_it(
    server: FakeServer, client: OpencodeClient, what: Answer, script: list[Behaviour], *, done: bool
) -> None:
    server.script(*script)
    assert await answer(client, what) is done
    assert len(server.seen) == len(script), "all of it, and no more"


async def test_an_answer_that_opencode_does_not_act_on_is_no_success(
    server: FakeServer, client: OpencodeClient
) -> None:
    """Case 24: a 200 proves nothing."""
    server.script(RUNS, YES, *[LISTED] * 20)
    with pytest.raises(OpencodeFailedError):
        await answer(client, Allow())


async def test_a_refusal_by_opencode_is_told_at_once(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(RUNS, says({"_tag": "BadRequest"}, 400), LISTED)
    with pytest.raises(OpencodeRefusedError):
        await answer(client, Allow())
    assert len(server.seen) == 2


async def test_a_reply_that_never_arrives_is_told(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(RUNS, *[resets, LISTED] * 3)
    with pytest.raises(OpencodeError) as caught:
        await answer(client, Allow())
    assert caught.value.outcome_unknown


@pytest.mark.parametrize(
    ("ask", "what", "target", "body"),
    [
        (permission(), Reject("why"), "/permission/per_1/reply", ("reject", "why")),
        (permission(), Reject(), "/permission/per_1/reply", ("reject", None)),
        (question(), Reject(), "/question/que_1/reject", None),
    ],
)
async def test_a_rejection_says_why_where_it_can(  # noqa: PLR0913 - two actors, four facts
    server: FakeServer,
    client: OpencodeClient,
    *,
    ask: Ask,
    what: Answer,
    target: str,
    body: tuple[str, str | None] | None,
) -> None:
    server.script(YES, EMPTY)
    assert await answer(client, what, ask)
    sent = server.seen[0]
    assert sent.target == f"{target}?directory=%2Fp"
    if body is not None:
        assert json.loads(sent.body).get("message") == body[1]


async def test_allowing_is_for_once_and_a_question_gets_its_answers(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(RUNS, YES, EMPTY, RUNS, YES, EMPTY)
    assert await answer(client, Allow())
    assert await answer(client, Allow((("red",), ("x", "y"))), question({}, _MANY))
    assert json.loads(server.seen[1].body) == {"reply": "once"}
    assert json.loads(server.seen[4].body) == {"answers": [["red"], ["x", "y"]]}

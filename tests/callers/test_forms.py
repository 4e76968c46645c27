"""What a person is shown, and what their answer means."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator

from opencode_mcp.callers.forms import DECLINED, NOBODY, decision_of, form_of
from opencode_mcp.engine.answers import Allow, Answer, Ask, Reject, check_fits
from tests.engine.asks import permission, question

_MANY = {"multiple": True}
_CLOSED = {"custom": False}


@pytest.mark.parametrize(
    ("ask", "content", "answer"),
    [
        pytest.param(permission(), {"allow": True}, Allow(), id="allowed"),
        pytest.param(permission(), {}, Allow(), id="accepted-without-a-word"),
        pytest.param(permission(), None, Allow(), id="accepted-without-a-form"),
        pytest.param(question(), {"q1": "red"}, Allow((("red",),)), id="label"),
        pytest.param(question(), {"q1_text": "green"}, Allow((("green",),)), id="own-words"),
        pytest.param(
            question(), {"q1": "red", "q1_text": "green"}, Allow((("green",),)), id="words-win"
        ),
        pytest.param(
            question(_MANY),
            {"q1": ["red"], "q1_text": "green"},
            Allow((("red", "green"),)),
            id="both-of-many",
        ),
        pytest.param(
            question({}, _MANY),
            {"q1": "red", "q2": ["red", "blue"]},
            Allow((("red",), ("red", "blue"))),
            id="two-questions",
        ),
        pytest.param(question({"options": []}), {"q1": "green"}, Allow((("green",),)), id="open"),
    ],
)
def test_accepting_means_yes(ask: Ask, content: dict[str, Any] | None, answer: Answer) -> None:
    decision = decision_of(ask, "accept", content)
    assert decision.answer == answer
    assert decision.why is None
    check_fits(ask, decision.answer)
    Draft202012Validator(form_of(ask, "ses_1").schema).validate(content or {})


@pytest.mark.parametrize(
    ("ask", "action", "content", "why", "told"),
    [
        pytest.param(permission(), "decline", None, DECLINED, "declined", id="decline"),
        pytest.param(permission(), "cancel", None, NOBODY, "no person", id="cancel"),
        pytest.param(
            permission(),
            "accept",
            {"allow": False, "feedback": "use ls"},
            DECLINED,
            "use ls",
            id="form-says-no",
        ),
        pytest.param(permission(), "accept", {"allow": "no"}, DECLINED, "declined", id="odd"),
        pytest.param(question(), "decline", None, DECLINED, None, id="question"),
        pytest.param(question(), "accept", {}, "left open", None, id="question-left-open"),
        pytest.param(question(_CLOSED), "accept", {"q1_text": "x"}, "left open", None, id="closed"),
    ],
)
def test_anything_else_means_no_and_says_why(
    ask: Ask,
    action: Literal["accept", "decline", "cancel"],
    content: dict[str, Any] | None,
    why: str,
    told: str | None,
) -> None:
    decision = decision_of(ask, action, content)
    assert isinstance(decision.answer, Reject)
    assert decision.why is not None
    assert why in decision.why
    if told is None:
        assert decision.answer.message is None
    else:
        assert decision.answer.message is not None
        assert told in decision.answer.message, "or the turn would end"
    check_fits(ask, decision.answer)


@pytest.mark.parametrize("ask", [permission(), question(), question({}, _MANY, _CLOSED)])
def test_a_form_is_a_flat_object_of_plain_values(ask: Ask) -> None:
    """MCP: nothing nested; a list of choices is the only list."""
    schema = form_of(ask, "ses_1").schema
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    for field in schema["properties"].values():
        assert field["type"] in {"string", "boolean", "array"}
        assert field["title"]


def test_a_form_tells_what_is_asked_where_and_by_whom() -> None:
    own, other = permission(), permission(session_id="ses_child")
    assert "bash ls" in form_of(own, "ses_1").message
    assert "ses_1" in form_of(own, "ses_1").message
    assert "sub-agent" not in form_of(own, "ses_1").message
    assert "sub-agent" in form_of(other, "ses_1").message

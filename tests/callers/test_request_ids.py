"""What an answer says of its call's request-id, and that it fits."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from opencode_mcp.callers.request_ids import with_request
from opencode_mcp.callers.sizing import FITTED_CHARS, MAX_RESULT_CHARS
from opencode_mcp.callers.wire import output_schema
from opencode_mcp.engine.requests import RepeatableCall

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result

_SHAPE = Draft202012Validator(output_schema())
_LONGEST_ID = '"' * 200


def _result(content: str) -> Result:
    return {"kind": "turn", "status": "completed", "content": content, "sessionId": "ses_1"}


def _call(**more: object) -> RepeatableCall:
    call = RepeatableCall("local", _LONGEST_ID, "digest")
    for name, value in more.items():
        setattr(call, name, value)
    return call


def test_a_call_without_a_request_id_has_nothing_added() -> None:
    assert with_request(_result("x"), None) == _result("x")


def test_both_halves_say_that_a_call_sent_nothing() -> None:
    expires_at = datetime(2026, 11, 30, 12, tzinfo=UTC)
    told = with_request(_result("answer"), _call(replayed=True, expires_at=expires_at))
    _SHAPE.validate(told)
    assert told.get("request") == {
        "id": _LONGEST_ID,
        "replayed": True,
        "expiresAt": "2026-11-30T12:00:00.000Z",
    }
    assert told["content"].startswith("answer")
    assert "sent nothing" in told["content"]


def test_a_first_call_keeps_its_text_and_one_that_was_released_has_no_expiry() -> None:
    told = with_request(_result("answer"), _call())
    assert told["content"] == "answer"
    assert told.get("request") == {"id": _LONGEST_ID, "replayed": False}


@pytest.mark.parametrize("spare", range(0, 1400, 100))
def test_a_result_that_only_just_fitted_still_fits_and_keeps_its_ids(spare: int) -> None:
    empty = len(json.dumps(_result(""), separators=(",", ":")))
    content = "x" * (MAX_RESULT_CHARS - empty - 1 - spare)
    told = with_request(_result(content), _call(replayed=True))
    _SHAPE.validate(told)
    assert len(json.dumps(told, separators=(",", ":"))) < MAX_RESULT_CHARS
    assert told.get("request", {}).get("id") == _LONGEST_ID
    assert "sent nothing" in told["content"]


def test_a_result_that_was_cut_to_size_is_not_cut_once_more_for_its_request_id() -> None:
    """Its marker would tell a wrong number, and its lists would go without need."""
    content = "x" * (FITTED_CHARS - len(json.dumps(_result(""))))
    told = with_request(_result(content), _call(replayed=True))
    assert told["content"].startswith(content)
    assert "truncated" not in told

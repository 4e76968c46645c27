"""What a result shows of a turn's schema, whatever else the turn did: whole, or not at all."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from opencode_mcp.callers.presenting import present_turn
from opencode_mcp.callers.shown import Shown
from opencode_mcp.callers.sizing import MAX_RESULT_CHARS, fit, serialized_size
from opencode_mcp.callers.wire import output_schema
from opencode_mcp.engine.effects import ToolCall
from opencode_mcp.engine.json_in_text import to_json
from opencode_mcp.engine.outcome import TurnStatus, Verdict
from opencode_mcp.engine.structured import Structured
from opencode_mcp.lifecycle import Phase
from opencode_mcp.records import Session, Submission, Turn

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result

_NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
_SHAPE = Draft202012Validator(output_schema())
_SESSION = Session("ses_1", "local", "i", "/repo", Phase.ACTIVE, 1, _NOW, _NOW)
_TURN = Turn("ses_1", 3, "msg_1", None, Submission.RECORDED, _NOW, _NOW)


def _shown(found: Structured | None, *, answer: str = "", calls: int = 0) -> Result:
    call = ToolCall("bash", "completed", "t" * 300, "r" * 300)
    verdict = Verdict(
        TurnStatus.COMPLETED, answer=answer, tool_calls=(call,) * calls, structured=found
    )
    result = present_turn(_SESSION, _TURN, verdict, Shown(20_000), now=_NOW)
    _SHAPE.validate(result)
    assert serialized_size(result) < MAX_RESULT_CHARS
    assert len(result["content"]) < MAX_RESULT_CHARS
    return result


@given(
    value=st.recursive(
        st.integers() | st.text(st.characters(exclude_categories=["Cs"])) | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    ),
    repeated=st.integers(1, 3_000),
    answer_chars=st.sampled_from([0, 1_000, 19_000, 60_000]),
    calls=st.sampled_from([0, 5, 50]),
)
def test_a_value_is_shown_whole_or_left_out_and_told(
    value: object, repeated: int, answer_chars: int, calls: int
) -> None:
    made = [value] * repeated
    text = to_json(made)
    result = _shown(Structured("valid", json=text), answer="a" * answer_chars, calls=calls)

    assert result["structuredOutputStatus"] == "valid"
    assert result["output"]["structuredChars"] == len(text)
    if "structuredOutput" in result:
        assert result["structuredOutput"] == made
    else:
        assert "structuredOutput" in result["omittedFields"]
        assert result["truncated"]
        assert "turn 3, section structured-output" in result["content"]


def test_what_is_added_later_never_costs_the_limit_but_the_value() -> None:
    result = _shown(Structured("valid", json=to_json(["x"] * 7_000)))
    assert "structuredOutput" in result
    result["content"] = "c" * 19_000
    result["toolCalls"] = [{"tool": "bash", "status": "completed"}]
    fitted = fit(result)
    assert serialized_size(fitted) < MAX_RESULT_CHARS
    assert fitted["omittedFields"] == ["structuredOutput"]
    assert len(fitted["content"]) == 19_000
    assert fitted["toolCalls"]


def test_a_value_that_is_null_is_shown() -> None:
    assert _shown(Structured("valid", json="null"))["structuredOutput"] is None


def test_the_longest_reason_is_shown_in_both_halves() -> None:
    found = Structured("invalid", code="SCHEMA_MISMATCH", message="#/a does not fit" * 60)
    result = _shown(found, answer="a" * 60_000, calls=50)
    assert result["structuredOutputError"]["message"] == found.message
    assert f"SCHEMA_MISMATCH: {found.message}" in result["content"]
    assert "structuredOutput" not in json.dumps(result.get("omittedFields"))


def test_a_turn_without_a_schema_says_nothing_of_one() -> None:
    result = _shown(None, answer='{"a": 1}')
    assert not [name for name in result if name.startswith("structured")]
    assert "structured" not in result["content"]

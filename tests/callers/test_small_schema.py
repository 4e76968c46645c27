"""The output schema is sent with every tool: small, and it allows what the long one allows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from opencode_mcp.callers.small_schema import small_schema
from opencode_mcp.callers.wire import Result, output_schema

_LONG = TypeAdapter(Result).json_schema()


def test_a_shape_that_is_used_once_stands_where_it_is_used() -> None:
    small = output_schema()
    text = json.dumps(small)
    assert all(text.count(f'"#/$defs/{name}"') > 1 for name in small["$defs"])
    assert len(text) < len(json.dumps(_LONG))


def test_only_notes_are_dropped_and_not_properties_of_their_names() -> None:
    schema = {
        "title": "T",
        "description": "d",
        "properties": {
            "title": {"title": "Title", "type": "string"},
            "one": {"$ref": "#/$defs/One"},
            "description": {"items": {"$ref": "#/$defs/Two"}},
            "again": {"$ref": "#/$defs/Two"},
        },
        "$defs": {"One": {"title": "One", "const": 1}, "Two": {"title": "Two", "const": 2}},
    }
    assert small_schema(schema) == {
        "$defs": {"Two": {"const": 2}},
        "properties": {
            "title": {"type": "string"},
            "one": {"const": 1},
            "description": {"items": {"$ref": "#/$defs/Two"}},
            "again": {"$ref": "#/$defs/Two"},
        },
    }


_TURN: dict[str, Any] = {
    "kind": "turn",
    "status": "completed",
    "content": "x",
    "output": {"state": "pending", "answerChars": 1},
    "pendingApprovals": [{"id": "p", "kind": "question", "sessionId": "s", "questions": []}],
    "results": [{"kind": "error", "status": "error", "content": "x", "error": {"name": "N"}}],
    "cancelled": None,
}


@pytest.mark.parametrize("validator", [_LONG, output_schema()], ids=["long", "small"])
def test_both_find_the_same_fault(validator: dict[str, Any]) -> None:
    faults = [
        list(error.absolute_path) for error in Draft202012Validator(validator).iter_errors(_TURN)
    ]
    assert faults == [["results", 0, "error"]]


_values: st.SearchStrategy[object] = (
    st.none() | st.integers() | st.text(max_size=3) | st.just([]) | st.just({})
)


@given(name=st.sampled_from(sorted(_LONG["properties"])), value=_values)
def test_they_allow_the_same_in_every_field(name: str, value: object) -> None:
    result = {"kind": "turn", "status": "ok", "content": "", name: value}
    long, small = Draft202012Validator(_LONG), Draft202012Validator(output_schema())
    assert long.is_valid(result) == small.is_valid(result)

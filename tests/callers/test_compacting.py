"""The output schema in few bytes still says what the whole one says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from opencode_mcp.callers.compacting import compact
from opencode_mcp.callers.wire import Result, output_schema

_WHOLE = TypeAdapter(Result).json_schema()
_TURN: dict[str, Any] = {
    "kind": "turn",
    "status": "completed",
    "content": "x",
    "cancelled": None,
    "omittedFields": ["hint"],
    "toolCalls": [{"tool": "bash", "status": "completed", "title": "t"}],
    "ending": {"action": "delete", "since": "now"},
}
_INFO: dict[str, Any] = {
    "kind": "info",
    "status": "ok",
    "content": "x",
    "server": {"mode": "attach", "maxSessions": 5},
    "models": [{"id": "a/b", "variants": ["high"], "toolCalls": True}],
    "roots": ["/a"],
}


@pytest.mark.parametrize("result", [_TURN, _INFO], ids=["turn", "info"])
def test_what_the_whole_schema_takes_the_compact_one_takes(result: dict[str, Any]) -> None:
    for schema in (_WHOLE, output_schema()):
        Draft202012Validator(schema).validate(result)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "dream"},
        {"status": "over"},
        {"content": 5},
        {"cancelled": "no"},
        {"omittedFields": [5]},
        {"omittedFields": "hint"},
        {"toolCalls": [{"tool": 5, "status": "x"}]},
        {"toolCalls": ["bash"]},
        {"ending": {"action": "forget", "since": "now"}},
        {"server": {"mode": ["attach"]}},
        {"models": [{"toolCalls": "yes"}]},
        {"roots": [{}]},
    ],
    ids="-".join,
)
def test_a_value_of_the_wrong_kind_is_refused_by_both(changes: dict[str, Any]) -> None:
    for schema in (_WHOLE, output_schema()):
        assert not Draft202012Validator(schema).is_valid(_TURN | changes)


def test_every_property_is_still_there() -> None:
    assert list(output_schema()["properties"]) == list(_WHOLE["properties"])
    assert output_schema()["required"] == _WHOLE["required"]


def test_a_property_may_be_named_like_a_keyword() -> None:
    schema = {
        "title": "T",
        "description": "gone",
        "properties": {"title": {"type": "string", "title": "Title"}, "enum": {"type": "integer"}},
    }
    assert compact(schema)["properties"] == {
        "title": {"type": "string"},
        "enum": {"type": "integer"},
    }


def test_it_is_much_smaller() -> None:
    assert len(json.dumps(output_schema())) < 0.6 * len(json.dumps(_WHOLE))

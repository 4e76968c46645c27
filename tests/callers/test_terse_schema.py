"""A schema in few words says the same."""

from __future__ import annotations

from jsonschema import Draft202012Validator

from opencode_mcp.callers.terse_schema import terse

_SCHEMA = {
    "$defs": {
        "Once": {
            "title": "Once",
            "properties": {"title": {"title": "Title", "type": "string"}},
            "required": ["title"],
            "type": "object",
        },
        "Inner": {"properties": {"once": {"$ref": "#/$defs/Once"}}, "type": "object"},
        "Twice": {"enum": ["a", "b"], "type": "string", "description": "of two"},
    },
    "properties": {
        "inner": {"items": {"$ref": "#/$defs/Inner"}, "type": "array"},
        "one": {"$ref": "#/$defs/Twice"},
        "other": {"anyOf": [{"$ref": "#/$defs/Twice"}, {"type": "null"}]},
        "description": {"type": "integer", "title": "Description"},
    },
    "type": "object",
}


def test_notes_go_and_what_is_used_once_stands_in_its_place() -> None:
    assert terse(_SCHEMA) == {
        "$defs": {"Twice": {"enum": ["a", "b"]}},
        "properties": {
            "inner": {
                "items": {
                    "properties": {
                        "once": {
                            "properties": {"title": {"type": "string"}},
                            "required": ["title"],
                            "type": "object",
                        }
                    },
                    "type": "object",
                },
                "type": "array",
            },
            "one": {"$ref": "#/$defs/Twice"},
            "other": {"anyOf": [{"$ref": "#/$defs/Twice"}, {"type": "null"}]},
            "description": {"type": "integer"},
        },
        "type": "object",
    }


def test_it_takes_and_refuses_what_the_long_one_does() -> None:
    long, short = Draft202012Validator(_SCHEMA), Draft202012Validator(terse(_SCHEMA))
    values: list[object] = [
        {"inner": [{"once": {"title": "x"}}], "one": "a", "other": None, "description": 1},
        {"inner": [{"once": {}}]},
        {"inner": [{"once": {"title": 1}}]},
        {"one": "c"},
        {"one": 1},
        {"other": "c"},
        {"description": "x"},
        [],
    ]
    for value in values:
        assert short.is_valid(value) == long.is_valid(value)

"""Which schemas are taken by their form, and that a refusal tells the place and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from opencode_mcp.engine.schema_rules import (
    MAX_SCHEMA_CHARS,
    MAX_SCHEMA_DEPTH,
    MAX_SCHEMA_NODES,
    PATH_CHARS,
    pointer,
    references,
    schema_text,
)
from opencode_mcp.errors import InvalidOutputSchemaError

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SECRET = "hunter2"


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"not": schema}
    return schema


TAKEN: dict[str, dict[str, Any]] = {
    "empty": {},
    "object": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    "not-an-object": {"type": "array", "items": {"type": "integer"}},
    "dialect": {"$schema": DIALECT},
    "dialect-with-fragment": {"$schema": DIALECT + "#"},
    "id-at-the-top": {"$id": "https://example.com/s", "$ref": "#/$defs/a", "$defs": {"a": {}}},
    "anchors": {"$ref": "#a", "$defs": {"x": {"$anchor": "a", "$dynamicAnchor": "b"}}},
    "dynamic": {"$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}},
    "properties-of-such-names": {"properties": {"$ref": {}, "$id": {}, "$schema": {}}},
    "required-of-such-names": {
        "dependentRequired": {"$ref": ["a"], "$id": ["b"], "$schema": []},
        "dependencies": {"$ref": ["a"]},
    },
    "data-of-such-names": {"enum": [{"$ref": "http://x/"}], "const": {"$id": "x"}},
    "as-deep-as-allowed": _nested(MAX_SCHEMA_DEPTH),
    "as-many-as-allowed": {"enum": [0] * (MAX_SCHEMA_NODES - 2)},
    "as-long-as-allowed": {"title": "x" * (MAX_SCHEMA_CHARS - len('{"title":""}'))},
    "true-and-false": {"properties": {"a": True, "b": False}},
}
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "older-dialect": ({"$schema": f"http://{SECRET}/draft-07/schema#"}, "#/$schema", DIALECT),
    "dialect-below": ({"items": {"$schema": "x"}}, "#/items/$schema", DIALECT),
    "dialect-of-no-text": ({"$schema": 7}, "#/$schema", DIALECT),
    "remote": ({"properties": {"a": {"$ref": f"http://{SECRET}/x"}}}, "#/properties/a/$ref", "out"),
    "a-file": ({"items": {"$ref": f"{SECRET}.json#/a"}}, "#/items/$ref", "out"),
    "remote-dynamic": ({"$dynamicRef": f"//{SECRET}/#x"}, "#/$dynamicRef", "out"),
    "remote-in-defs": ({"$defs": {"a": {"$ref": SECRET}}}, "#/$defs/a/$ref", "out"),
    "remote-in-a-list": ({"anyOf": [{}, {"$ref": SECRET}]}, "#/anyOf/1/$ref", "out"),
    "remote-in-a-pattern": (
        {"patternProperties": {"a/b": {"$ref": SECRET}}},
        "#/patternProperties/a~1b/$ref",
        "out",
    ),
    "reference-of-no-text": ({"$ref": [SECRET]}, "#/$ref", "out"),
    "id-below": ({"$defs": {"a": {"$id": SECRET}}}, "#/$defs/a/$id", "$defs"),
    "too-deep": (_nested(MAX_SCHEMA_DEPTH + 1), "/not/not", str(MAX_SCHEMA_DEPTH)),
    "far-too-deep": (_nested(900), "/not/not", str(MAX_SCHEMA_DEPTH)),
    "deep-data": ({"const": _nested(MAX_SCHEMA_DEPTH)}, "/not", str(MAX_SCHEMA_DEPTH)),
    "too-many": ({"enum": [0] * (MAX_SCHEMA_NODES - 1)}, "", f"{MAX_SCHEMA_NODES:,}"),
    "too-many-properties": (
        {"properties": {f"p{n}": {} for n in range(MAX_SCHEMA_NODES)}},
        "",
        f"{MAX_SCHEMA_NODES:,}",
    ),
    "too-long": ({"title": "x" * MAX_SCHEMA_CHARS}, "", f"{MAX_SCHEMA_CHARS:,}"),
    "nan": ({"maximum": float("nan")}, "", "JSON"),
    "half-a-surrogate": ({"title": "\ud800"}, "", "JSON"),
}


@pytest.mark.parametrize("schema", TAKEN.values(), ids=TAKEN)
def test_a_schema_within_the_rules_is_taken_as_it_is(schema: dict[str, Any]) -> None:
    text = schema_text(schema)
    assert json.loads(text) == schema
    assert len(text) <= MAX_SCHEMA_CHARS


@pytest.mark.parametrize(("schema", "where", "why"), REFUSED.values(), ids=REFUSED)
def test_a_schema_beyond_the_rules_is_refused_by_its_place(
    schema: dict[str, Any], where: str, why: str
) -> None:
    with pytest.raises(InvalidOutputSchemaError) as refusal:
        schema_text(schema)
    text = str(refusal.value)
    assert where in text
    assert why in text
    assert SECRET not in text
    assert len(text) < 350


def test_a_place_is_told_by_its_end_and_in_a_bounded_length() -> None:
    told = pointer(("properties", "x" * 500, "type"))
    assert len(told) == PATH_CHARS
    assert told.endswith("x/type")
    assert pointer(()) == "#"
    assert pointer(("a/b", "c~d", 0)) == "#/a~1b/c~0d/0"


def test_references_are_listed_with_their_places_and_data_has_none() -> None:
    schema = {
        "$ref": "#/$defs/a",
        "properties": {"$ref": {"$dynamicRef": "#n"}},
        "const": {"$ref": "#/x"},
    }
    assert sorted(references(schema)) == [
        ("#/$ref", "#/$defs/a"),
        ("#/properties/$ref/$dynamicRef", "#n"),
    ]

"""A JSON Schema in few bytes: it is sent with every tool, and each caller pays for that.

Left out is what says nothing to a validator: titles, descriptions, the names of definitions, a type
beside the only values that there are. What occurs again and again is said once, what occurs once
is said where it is. And only the
object itself says what is always there (contract §3: all else is optional); what its parts must
have, the type checker and the tests of our own see to.
"""

from __future__ import annotations

import json
from string import ascii_letters
from typing import Any

_REF = "#/$defs/"
_LIST_OF_TEXT = {"items": {"type": "string"}, "type": "array"}


def compact(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object in fewer bytes; its parts' `required` is given up."""
    bare = _without_notes(schema)
    definitions = {**bare.pop("$defs", {}), "texts": _LIST_OF_TEXT}
    for definition in definitions.values():
        definition.pop("required", None)
    used = json.dumps([bare, definitions])
    uses = {name: used.count(f'"{_REF}{name}"') for name in definitions}
    once = {name: shape for name, shape in definitions.items() if uses[name] == 1}
    bare = _inlined(bare, once)
    definitions = {
        name: _inlined(shape, once) for name, shape in definitions.items() if name not in once
    }
    # those that are used most have the shortest names; there are enough letters for all of ours
    names = sorted(definitions, key=lambda name: (-uses[name], name))
    letters = [*ascii_letters, *(first + second for first in "ab" for second in ascii_letters)]
    new = dict(zip(names, letters, strict=False))
    named = {new[name]: _renamed(definitions[name], new, top=True) for name in names}
    return {"type": "object", **_renamed(bare, new), "$defs": named}


def _without_notes(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop `title` and `description` keywords, but not properties of those names."""
    bare: dict[str, Any] = {}
    for key, value in schema.items():
        if key in {"title", "description"} and isinstance(value, str):
            continue
        if key == "type" and ("enum" in schema or "const" in schema):
            continue
        if key == "anyOf" and all(set(kind) == {"type"} for kind in value):
            bare["type"] = [kind["type"] for kind in value]
            continue
        if key in {"properties", "$defs"}:
            bare[key] = {name: _without_notes(sub) for name, sub in value.items()}
        elif isinstance(value, dict):
            bare[key] = _without_notes(value)
        elif isinstance(value, list):
            bare[key] = [_without_notes(v) if isinstance(v, dict) else v for v in value]
        else:
            bare[key] = value
    return bare


def _inlined(value: Any, shapes: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return a part of a schema with these shapes where they are used; none contains itself."""
    if isinstance(value, list):
        return [_inlined(item, shapes) for item in value]
    if not isinstance(value, dict):
        return value
    name = str(value.get("$ref", "")).removeprefix(_REF)
    if name in shapes:
        return _inlined(shapes[name], shapes)
    return {key: _inlined(item, shapes) for key, item in value.items()}


def _renamed(value: Any, new: dict[str, str], *, top: bool = False) -> Any:  # noqa: ANN401 - JSON
    """Return a part of a schema with the new names, and each list of texts by reference."""
    if value == _LIST_OF_TEXT and not top:
        return {"$ref": _REF + new["texts"]}
    if isinstance(value, list):
        return [_renamed(item, new) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _REF + new[item.removeprefix(_REF)]
        if key == "$ref" and isinstance(item, str)
        else _renamed(item, new)
        for key, item in value.items()
    }

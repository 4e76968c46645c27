"""Make a JSON Schema small without changing what it allows: it is sent with every tool."""

from __future__ import annotations

import json
from typing import Any

_REF = "#/$defs/"


def small_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without titles and descriptions, each shape where it is used.

    A shape that is used more than once keeps its name. None may contain itself.
    """
    bare = _without_notes(schema)
    shapes: dict[str, Any] = bare.pop("$defs", {})
    text = json.dumps([bare, shapes])
    once = {name for name in shapes if text.count(json.dumps(_REF + name)) == 1}
    inline = {name: shapes[name] for name in once}
    small: dict[str, Any] = _inlined(bare, inline)
    kept = {name: _inlined(shape, inline) for name, shape in shapes.items() if name not in once}
    return {"$defs": kept, **small} if kept else small


def _without_notes(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop `title` and `description` keywords, but not properties of those names."""
    bare: dict[str, Any] = {}
    for key, value in schema.items():
        if key in {"title", "description"} and isinstance(value, str):
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


def _inlined(value: Any, shapes: dict[str, Any]) -> Any:  # noqa: ANN401 - any part of a schema
    if isinstance(value, list):
        return [_inlined(item, shapes) for item in value]
    if not isinstance(value, dict):
        return value
    name = str(value.get("$ref", "")).removeprefix(_REF)
    if name in shapes:
        return _inlined(shapes[name], shapes)
    return {key: _inlined(item, shapes) for key, item in value.items()}

"""A JSON Schema in few words: it is sent with every tool, and each caller pays for its length."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

_REFERENCE = re.compile(r'"#/\$defs/([^"]+)"')
_NOTES = frozenset({"title", "description"})


def terse(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of the same meaning without notes, and with what is used once in its place.

    Dropped are `title` and `description` (but not properties of those names), and a `type` beside
    the values themselves. No definition may refer to itself.
    """
    bare = _without_notes(schema)
    counts = Counter(_REFERENCE.findall(json.dumps(bare)))
    definitions = bare.pop("$defs", {})
    once = {name: part for name, part in definitions.items() if counts[name] == 1}
    kept = {name: _inlined(part, once) for name, part in definitions.items() if name not in once}
    inlined: dict[str, Any] = _inlined(bare, once)
    return {"$defs": kept, **inlined} if kept else inlined


def _without_notes(schema: dict[str, Any]) -> dict[str, Any]:
    bare: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NOTES and isinstance(value, str):
            continue
        if key == "type" and not {"enum", "const"}.isdisjoint(schema):
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


def _inlined(part: Any, once: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Put each definition of `once` where it is referred to."""
    if isinstance(part, list):
        return [_inlined(item, once) for item in part]
    if not isinstance(part, dict):
        return part
    name = str(part.get("$ref", "")).removeprefix("#/$defs/")
    if set(part) == {"$ref"} and name in once:
        return _inlined(once[name], once)
    return {key: _inlined(value, once) for key, value in part.items()}

"""Which JSON Schemas are taken as an `output-schema`, as far as their form tells.

A schema comes from a caller and is worked on by us, so it is bounded, and nothing in it may lead
out of it: only references that begin with `#`, no `$id` below the top (it would give those another
meaning). Whether it is a schema at all, `judging` tells, in a process of its own. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.engine.json_in_text import to_json
from opencode_mcp.errors import InvalidOutputSchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: of the compact JSON: it goes into the instructions of its turn and into the database
MAX_SCHEMA_CHARS = 65_536
#: how deep objects and arrays may lie in each other
MAX_SCHEMA_DEPTH = 32
#: of objects, arrays and single values together
MAX_SCHEMA_NODES = 2_000
#: of a place in a schema or in an answer, as it is told
PATH_CHARS = 100

#: the place of a schema itself
ROOT = "#"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCES = ("$ref", "$dynamicRef")
#: what lies under these is data and no schema
_DATA = frozenset({"const", "default", "enum", "examples"})
#: what lies under these are names of the caller's own, and schemas (or lists of names) under them
_NAMED = frozenset(
    {
        "properties",
        "patternProperties",
        "$defs",
        "definitions",
        "dependentSchemas",
        "dependentRequired",
        "dependencies",
    }
)


def schema_text(schema: Mapping[str, object]) -> str:
    """Return a caller's schema as compact JSON.

    Raises InvalidOutputSchemaError, which says where in the schema, and never what stands there.
    """
    for count, (path, value, is_schema) in enumerate(_walk(dict(schema)), start=1):
        if count > MAX_SCHEMA_NODES:
            raise refused(ROOT, f"has more than {MAX_SCHEMA_NODES:,} values")
        if len(path) > MAX_SCHEMA_DEPTH:
            raise refused(pointer(path), f"lies more than {MAX_SCHEMA_DEPTH} deep")
        if is_schema and isinstance(value, dict):
            _check_keywords(path, value)
    try:
        text = to_json(schema)
        text.encode()
    except ValueError as error:  # NaN, or half of a surrogate pair
        raise refused(ROOT, "has a number or a text that JSON cannot carry") from error
    if len(text) > MAX_SCHEMA_CHARS:
        raise refused(ROOT, f"has {len(text):,} characters; {MAX_SCHEMA_CHARS:,} are allowed")
    return text


def references(schema: object) -> Iterator[tuple[str, str]]:
    """Yield the place and the target of each reference of a schema."""
    for path, value, is_schema in _walk(schema):
        if is_schema and isinstance(value, dict):
            for name in _REFERENCES:
                if name in value:
                    yield pointer((*path, name)), str(value[name])


def pointer(path: tuple[str | int, ...]) -> str:
    """Return a place as a JSON pointer, at most `PATH_CHARS` long: its end tells the most."""
    full = ROOT + "".join(f"/{str(p).replace('~', '~0').replace('/', '~1')}" for p in path)
    return full if len(full) <= PATH_CHARS else "…" + full[1 - PATH_CHARS :]


def refused(where: str, why: str) -> InvalidOutputSchemaError:
    """Return the error for a schema that is not taken."""
    at = f" at {where}" if where != ROOT else ""
    msg = f"output-schema{at} {why}. Nothing was sent: mend the schema and call again"
    return InvalidOutputSchemaError(msg)


def _check_keywords(path: tuple[str | int, ...], schema: dict[str, object]) -> None:
    dialect = schema.get("$schema", _DIALECT)
    if not isinstance(dialect, str) or dialect.rstrip("#") != _DIALECT:
        raise refused(pointer((*path, "$schema")), f"must be {_DIALECT}")
    if path and "$id" in schema:
        raise refused(pointer((*path, "$id")), "is not allowed: use $defs and #/$defs/…")
    for name in _REFERENCES:
        target = schema.get(name, "#")
        if not isinstance(target, str) or not target.startswith("#"):
            why = "leads out of the schema: only references that begin with # are allowed"
            raise refused(pointer((*path, name)), why)


def _walk(schema: object) -> Iterator[tuple[tuple[str | int, ...], object, bool]]:
    """Yield each value of a schema with its place, and whether its keys are keywords."""
    left: list[tuple[tuple[str | int, ...], object, bool]] = [((), schema, True)]
    while left:
        path, value, is_schema = left.pop()
        yield path, value, is_schema
        if isinstance(value, dict):
            for name, inner in value.items():
                if not is_schema or name in _DATA:
                    kind = False
                elif name in _NAMED and isinstance(inner, dict):
                    yield (*path, name), inner, False
                    left += [((*path, name, own), below, True) for own, below in inner.items()]
                    continue
                else:
                    kind = True
                left.append(((*path, name), inner, kind))
        elif isinstance(value, list):
            left += [((*path, index), inner, is_schema) for index, inner in enumerate(value)]

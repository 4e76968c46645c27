"""Holds our pydantic models against the schemas of OpenCode's own `/doc`."""

from __future__ import annotations

import types
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

    from tests.twin.shapes import Json

#: a moment is milliseconds on the wire; an int of ours takes a number without a fraction
_KINDS: dict[object, set[str]] = {
    str: {"string"},
    bool: {"boolean"},
    int: {"integer", "number"},
    float: {"integer", "number"},
    datetime: {"integer", "number"},
}
_UNIONS = (Union, types.UnionType)


def _is_taken_apart(field: FieldInfo) -> bool:
    """Whether a validator of ours makes something else of what comes, whatever its kind is."""
    reads = [one for one in field.metadata if isinstance(one, BeforeValidator)]
    return bool(reads) and field.annotation is not datetime


class Shapes:
    """The schemas of one document."""

    def __init__(self, document: Json) -> None:
        self._document = document

    def gaps(self, shape: Any, schema: Json, place: str) -> Iterator[str]:  # noqa: ANN401 - a type
        """Name each place where `schema` does not promise what `shape` reads."""
        origin, given = get_origin(shape), get_args(shape)
        variants = [*self._variants(schema)]
        if origin is Annotated:
            yield from self.gaps(given[0], schema, place)
        elif origin in _UNIONS:
            yield from self._gaps_of_union(given, schema, place)
        elif origin is tuple:  # of any length: a list to us
            yield from self._gaps_of_many(list, given[0], variants, place)
        elif origin in {list, dict}:
            yield from self._gaps_of_many(origin, given[-1], variants, place)
        elif isinstance(shape, type) and issubclass(shape, BaseModel):
            yield from self._gaps_of_model(shape, variants, place)
        elif shape is not Any:
            yield from self._missing(variants, _KINDS[shape], place)

    def _gaps_of_many(
        self,
        origin: Any,  # noqa: ANN401 - list or dict
        item: Any,  # noqa: ANN401 - a type
        variants: list[Json],
        place: str,
    ) -> Iterator[str]:
        kind, where = ("array", "items") if origin is list else ("object", "additionalProperties")
        for variant in self._of_type(variants, kind):
            if isinstance(schema := variant.get(where), dict):
                yield from self.gaps(item, schema, f"{place}[]")
        yield from self._missing(variants, {kind}, place)

    def _gaps_of_union(self, given: tuple[Any, ...], schema: Json, place: str) -> Iterator[str]:
        """One of our alternatives has to fit; None is for what is absent."""
        tries = [[*self.gaps(one, schema, place)] for one in given if one is not type(None)]
        if all(tries):
            yield from min(tries, key=len)

    def _gaps_of_model(
        self, model: type[BaseModel], variants: list[Json], place: str
    ) -> Iterator[str]:
        objects = [*self._of_type(variants, "object")]
        yield from self._missing(variants, {"object"}, place)
        for name, field in model.model_fields.items():
            wire = field.alias or name
            known = [one for one in objects if wire in one.get("properties", {})]
            if not known:
                yield f"{place}.{wire} is unknown"
            elif not _is_taken_apart(
                field
            ):  # a message may be a user's or an assistant's: one of them has to fit
                either = {"anyOf": [one["properties"][wire] for one in known]}
                yield from self.gaps(field.annotation, either, f"{place}.{wire}")
            for one in objects:
                if field.is_required() and wire not in one.get("required", ()):
                    yield f"{place}.{wire} is not always there"

    def _missing(self, variants: list[Json], kinds: set[str], place: str) -> Iterator[str]:
        if not any(self._of_type(variants, kind) for kind in kinds):
            yield f"{place} is {[one.get('type') for one in variants]}, not {sorted(kinds)}"

    @staticmethod
    def _of_type(variants: list[Json], kind: str) -> list[Json]:
        return [one for one in variants if one.get("type") == kind]

    def _variants(self, schema: Json) -> Iterator[Json]:
        """Give all that a schema may be, references followed."""
        if "$ref" in schema:
            found = self._document
            for step in schema["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            yield from self._variants(found)
            return
        alternatives = schema.get("anyOf") or schema.get("oneOf")
        if alternatives is None:
            yield schema
        else:
            for one in alternatives:
                yield from self._variants(one)

"""An `output-schema`, an answer that fits it, and what a result tells of the two."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.bridge import Answer

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["name", "count"],
}
VALUE = {"name": "Zoë", "count": 3}


def block(value: object) -> str:
    """Return the script of a model that gives this value as it was asked to."""
    lines = ["It is done.", "```json", *json.dumps(value, ensure_ascii=False).split("\n"), "```"]
    return "\n".join(f"SAY:{line}" for line in lines)


def told(answer: Answer) -> dict[str, Any]:
    """Return what a result tells of the schema."""
    return {name: field for name, field in answer.structured.items() if "structured" in name}

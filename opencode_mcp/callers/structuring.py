"""What a result shows of a turn's `output-schema`: the value, or why there is none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from opencode_mcp.callers.sizing import MAX_RESULT_CHARS, serialized_size

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.structured import Structured
    from opencode_mcp.records import Turn

#: kept free for what is added to a result after its turn's fields
_ROOM_CHARS = 2_000


def add_structured(result: Result, found: Structured | None, turn: Turn) -> None:
    """Add what came of the schema, to the fields and to the text.

    The value is left out whole where the result would become too large with it; the text, and
    `omittedFields`, say so. It is the first to go: `content` mostly holds it, too.
    """
    if found is None:
        return
    result["structuredOutputStatus"] = found.status
    note = f"[structured output: {found.status}]"
    if found.json is not None:
        result["output"]["structuredChars"] = len(found.json)
        note += _add_value(result, found.json, turn)
    elif found.code is not None:
        message = found.message or ""
        result["structuredOutputError"] = {"code": found.code, "message": message}
        note += f" {found.code}: {message}. Ask for it again with opencode-reply and output-schema."
    result["content"] = f"{result['content']}\n{note}"


def _add_value(result: Result, value: str, turn: Turn) -> str:
    """Add the value if there is room for it; return what the text has to say if there is none."""
    note = (
        f" It has {len(value)} characters: read it with opencode-output, turn {turn.number},"
        " section structured-output."
    )
    if len(value) + serialized_size(result) + len(note) + _ROOM_CHARS < MAX_RESULT_CHARS:
        result["structuredOutput"] = json.loads(value)
        return ""
    result["truncated"] = True
    result["omittedFields"] = [*result.get("omittedFields", []), "structuredOutput"]
    return note

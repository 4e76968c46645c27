"""What a result shows of a turn's `output-schema`: the value, or why there is none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from opencode_mcp.callers.sizing import FITTED_CHARS, mark_omitted

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.structured import Structured

_FIELD = "structuredOutput"


def add_structured(result: Result, found: Structured | None) -> list[str]:
    """Add what came of the schema to the fields, and return what the text says of it.

    The value is shown whole or not at all, and the first field to go where there is too much
    (`sizing`): `content` mostly holds it, too. Then `left_out` tells where it is.
    """
    if found is None:
        return []
    result["structuredOutputStatus"] = found.status
    note = f"[structured output: {found.status}]"
    if found.json is None:
        code, message = found.code or "", found.message or ""
        result["structuredOutputError"] = {"code": code, "message": message}
        return [f"{note} {code}: {message}. Ask again with opencode-reply and output-schema."]
    result["output"]["structuredChars"] = len(found.json)
    if len(found.json) > FITTED_CHARS:
        mark_omitted(result, _FIELD)
    else:
        result["structuredOutput"] = json.loads(found.json)
    return [note]


def left_out(result: Result) -> list[str]:
    """Return what the text says of a value for which there was no room."""
    if _FIELD not in result.get("omittedFields", []):
        return []
    where = f"opencode-output with this id, turn {result['turn']}, section structured-output"
    return [f"The structured output is too long for this: read it with {where}."]

"""Cut a result to size: never an id, never serialized JSON, and always said (contract §3).

Sizes are those of the serialized text, because that is what a client's limit counts: a control
character takes six characters there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result

#: the serialized `structuredContent` stays under this, and so does the text block
MAX_RESULT_CHARS = 45_000
ERROR_CHARS = 2_000
NAME_CHARS = 300
FILES = 200
TOOL_CALLS = 20
APPROVALS = 10

#: what goes first when a result is too large; the answer itself is the last to shrink
_DROP_ORDER = (
    "structuredOutput",
    "toolCalls",
    "filesChanged",
    "warnings",
    "pendingApprovals",
    "hint",
)
_MIN_CONTENT = 1_000


def serialized_size(value: object) -> int:
    """Return how many characters `value` takes as JSON, as our server writes it."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def clip(text: str, limit: int) -> tuple[str, bool]:
    """Return `text` in at most `limit` serialized characters, and whether it was cut.

    Head and tail are kept, with a marker between them that says how much is left out.
    """
    if serialized_size(text) - 2 <= limit:
        return text, False
    low, high = 0, min(len(text), limit)
    best = _cut(text, 0)
    while low <= high:
        kept = (low + high) // 2
        candidate = _cut(text, kept)
        if serialized_size(candidate) - 2 <= limit:
            best, low = candidate, kept + 1
        else:
            high = kept - 1
    return best, True


def _cut(text: str, kept: int) -> str:
    head = kept * 2 // 3
    tail = kept - head
    marker = f"\n[… {len(text) - kept} characters left out …]\n"
    return text[:head] + marker + (text[-tail:] if tail else "")


def short(text: str, limit: int = NAME_CHARS) -> str:
    """Return a path, title or pattern in at most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def fit(result: Result, limit: int = MAX_RESULT_CHARS) -> Result:
    """Reduce a result, in a fixed order, until it is smaller than `limit` serialized."""
    if serialized_size(result) < limit:
        return result
    fields = cast("dict[str, Any]", dict(result))
    omitted: list[str] = list(fields.get("omittedFields", []))
    if "sessions" in fields:
        _fewer_sessions(fields, limit)
    for name in _DROP_ORDER:
        if serialized_size(fields) + 200 < limit:  # room for the notes below
            break
        if fields.pop(name, None) is not None:
            omitted.append(name)
    over = serialized_size(fields) + 200 - limit
    if over > 0:
        size = serialized_size(fields["content"])
        fields["content"], _ = clip(fields["content"], max(_MIN_CONTENT, size - over))
        omitted.append("content")
    fields["truncated"] = True
    if omitted:
        fields["omittedFields"] = omitted
    return cast("Result", fields)


def _fewer_sessions(fields: dict[str, Any], limit: int) -> None:
    """End the page earlier, so that the next one goes on without a gap."""
    while len(fields["sessions"]) > 1 and serialized_size(fields) + 200 >= limit:
        kept = len(fields["sessions"]) * 3 // 4
        fields["sessions"] = fields["sessions"][:kept]
        lines = fields["content"].split("\n")
        fields["content"] = "\n".join([*lines[: kept + 1], "(the page ends here: it was too long)"])
    fields["hasMore"] = fields["offset"] + len(fields["sessions"]) < fields["total"]
    if fields["hasMore"]:
        fields["nextOffset"] = fields["offset"] + len(fields["sessions"])

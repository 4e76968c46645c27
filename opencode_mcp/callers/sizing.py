"""Cut texts and lists to size: never an id, never serialized JSON, and always said (contract §3).

Sizes are those of the serialized text, because that is what a client's limit counts: a control
character takes six characters there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opencode_mcp.callers.wire import Result

T = TypeVar("T")

#: the serialized `structuredContent` stays under this, and so does the text block
MAX_RESULT_CHARS = 45_000
#: kept free for what a call adds to a result that was cut to size, such as its `request`
SPARE_CHARS = 1_500
FITTED_CHARS = MAX_RESULT_CHARS - SPARE_CHARS
ERROR_CHARS = 2_000
NAME_CHARS = 300
FILES = 200
TOOL_CALLS = 20
APPROVALS = 10
#: what `truncated` and `omittedFields` may still take
NOTES_CHARS = 300

#: a character beyond the first 65,536, as JSON: no character takes more
_LONGEST_ESCAPE = 12
#: what goes first when a result is too large; the answer itself is the last to shrink
_DROP_ORDER = ("structuredOutput", "toolCalls", "filesChanged")


def serialized_size(value: object) -> int:
    """Return how many characters `value` takes as JSON in its longest spelling.

    Our server writes characters beyond ASCII as they are; who passes a result on may escape them.
    """
    return len(json.dumps(value))


def text_size(text: str) -> int:
    """Return how many characters `text` takes within JSON in its longest spelling."""
    return serialized_size(text) - 2


def written_size(text: str) -> int:
    """Return how many characters `text` takes within JSON as our server writes it."""
    return len(json.dumps(text, ensure_ascii=False)) - 2


def clip(text: str, limit: int, longest: int | None = None) -> tuple[str, bool]:
    """Return `text` in at most `limit` characters as our server writes it; and whether it was cut.

    `longest`: nor may it take more than so many in its longest spelling. Head and tail are kept,
    with a marker between them that says how much is left out; the marker (some 50 characters)
    stays whole whatever the limits are.
    """

    def fits(part: str) -> bool:
        if len(part) > limit:  # a long text need not be measured
            return False
        return written_size(part) <= limit and (longest is None or text_size(part) <= longest)

    if fits(text):
        return text, False
    low, high = 0, min(len(text), max(limit, 0))
    best = _cut(text, 0)
    while low <= high:
        kept = (low + high) // 2
        candidate = _cut(text, kept)
        if fits(candidate):
            best, low = candidate, kept + 1
        else:
            high = kept - 1
    return best, True


def clip_message(text: str, limit: int = ERROR_CHARS) -> tuple[str, bool]:
    """Return an error's message in at most `limit` characters: it is told up to three times."""
    return clip(text, limit, 3 * limit)


def _cut(text: str, kept: int) -> str:
    head = kept * 2 // 3
    tail = kept - head
    marker = f"\n[… {len(text) - kept} characters left out …]\n"
    return text[:head] + marker + (text[-tail:] if tail else "")


def short(text: str, limit: int = NAME_CHARS) -> str:
    """Return the beginning of a path, title or pattern, in at most `limit` characters as written.

    Nor does it take more than three times that in its longest spelling. `…` at its end says that
    there was more.
    """
    if len(text) <= limit and _over(text, limit) <= 0:
        return text
    kept = text[: limit - 1]
    while (over := _over(kept, limit - 1)) > 0:
        kept = kept[: -max(1, over // _LONGEST_ESCAPE)]
    return kept + "…"


def _over(text: str, limit: int) -> int:
    return max(written_size(text) - limit, text_size(text) - 3 * limit)


def short_line(text: str, limit: int = NAME_CHARS) -> str:
    """Return a text as one line of at most `limit` characters."""
    return short(" ".join(text[: limit * 4].split()), limit)


def fitting(items: Iterable[T], limit: int, size: Callable[[T], int] = serialized_size) -> list[T]:
    """Return the first of `items`, as many as fit whole into `limit` characters together."""
    kept: list[T] = []
    used = 0
    for item in items:
        used += size(item) + 1
        if used > limit:
            break
        kept.append(item)
    return kept


def shares(needs: Sequence[int], budget: int) -> list[int]:
    """Share `budget` between those who need so much: who needs less leaves more to the others.

    Nobody gets more than it needs; all that get less than that get the same.
    """
    given = [0] * len(needs)
    left = max(budget, 0)
    for done, index in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        given[index] = min(needs[index], left // (len(needs) - done))
        left -= given[index]
    return given


def mark_omitted(result: Result, *names: str) -> None:
    """Say that so much of the result was cut or left out, against its caller's wish."""
    if names:
        omitted = result.get("omittedFields", [])
        result["truncated"] = True
        result["omittedFields"] = omitted + [name for name in names if name not in omitted]


def fit(result: Result, limit: int = FITTED_CHARS) -> Result:
    """Reduce a result, in a fixed order, until it is smaller than `limit` serialized.

    Meant for one whose every field is bounded already. The order: `structuredOutput`, `toolCalls`
    and `filesChanged` go whole; then `content` keeps its head and its tail.
    """
    over = serialized_size(result) + NOTES_CHARS - limit
    if over <= 0:
        return result
    fitted = drop_in_order(result, limit)
    over = serialized_size(fitted) + NOTES_CHARS - limit
    if over > 0:
        size = text_size(fitted["content"])
        fitted["content"], _ = clip(fitted["content"], size, size - over)
        mark_omitted(fitted, "content")
    return fitted


def drop_in_order(result: Result, limit: int) -> Result:
    """Return the result without the lists that it must lose to be smaller than `limit`."""
    fields = cast("dict[str, Any]", dict(result))
    for name in _DROP_ORDER:
        if serialized_size(fields) + NOTES_CHARS <= limit:
            break
        if fields.pop(name, None) is not None:
            mark_omitted(cast("Result", fields), name)
    return cast("Result", fields)

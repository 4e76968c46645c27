"""The measure of `opencode-output`: a page of a long answer, against reading it by hand."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from bench.measure import Comparison, Stopwatch, alternate

if TYPE_CHECKING:
    from pathlib import Path

    from fastmcp import Client

    from bench.by_hand import ByHand

#: 1 MB
_ANSWER = "All of this is one long answer. " * 32_768
_PAGE = 20_000
_OFFSETS = range(0, len(_ANSWER) - _PAGE, 7 * _PAGE)


async def answer_page(
    client: Client[Any], hand: ByHand, project: Path, times: int
) -> list[Comparison]:
    """Read a page from the middle, which was read before: by its snapshot, and without."""
    arguments = {"prompt": f"SAY:{_ANSWER}", "cwd": str(project), "wait-seconds": 600}
    started = await client.call_tool_mcp("opencode", arguments)
    session_id = str((started.structured_content or {})["sessionId"])
    named: dict[str, Any] = {"sessionId": session_id, "turn": 1}
    first = await client.call_tool_mcp("opencode-output", named)
    pinned = {**named, "snapshot-id": (first.structured_content or {})["snapshotId"]}
    offsets = itertools.cycle(_OFFSETS)
    offset = 0

    async def ours(asked: dict[str, Any]) -> float:
        nonlocal offset
        offset = next(offsets)
        watch = Stopwatch()
        answer = await client.call_tool_mcp("opencode-output", {**asked, "offset": offset})
        ms = watch.ms
        _check(str((answer.structured_content or {})["content"]), offset)
        return ms

    async def by_hand() -> float:
        watch = Stopwatch()
        page = (await hand.answer(session_id))[offset : offset + _PAGE]
        ms = watch.ms
        _check(page, offset)
        return ms

    measures = (("warm", pinned), ("warm, without snapshot-id", named))
    return [
        await alternate(
            f"a page of a 1 MB answer, {name} ÷ by hand",
            lambda asked=asked: ours(asked),  # type: ignore[misc]
            by_hand,
            times=times,
            allowed=1.2,
        )
        for name, asked in measures
    ]


def _check(page: str, offset: int) -> None:
    if page != _ANSWER[offset : offset + _PAGE]:
        message = f"not the page at {offset}: {page[:100]!r}"
        raise RuntimeError(message)

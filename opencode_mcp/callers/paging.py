"""How long a page may be: pure, whatever is paged through."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def page_end(offset: int, limit: int, total: int, fits: Callable[[int], bool]) -> int:
    """Return where the page from `offset` ends: after at most `limit` of `total`.

    It ends earlier where `fits` says that it is too large, and holds one at least, so that whoever
    follows the pages comes to the end. `fits` is true up to some end and false beyond it.
    """
    low, high = offset + 1, min(offset + limit, total)
    if high <= low or fits(high):
        return max(offset, high)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def begun_between(starts: Sequence[int], offset: int, end: int) -> slice:
    """Return which of the things that begin at `starts`, in order, begin on a page."""
    return slice(bisect_left(starts, offset), bisect_right(starts, end - 1))

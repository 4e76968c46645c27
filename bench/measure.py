"""Alternate two ways of doing the same, and print the ratio of their medians."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two series, taken in turn, and the ratio that the issue allows."""

    name: str
    ours: list[float]
    by_hand: list[float]
    allowed: float
    unit: str

    @property
    def ratio(self) -> float:
        """The ratio of the medians."""
        return statistics.median(self.ours) / statistics.median(self.by_hand)

    @property
    def pairwise(self) -> float:
        """The median of the ratios pair by pair: it holds when the machine's speed drifts."""
        return statistics.median(a / b for a, b in zip(self.ours, self.by_hand, strict=True))


async def alternate(  # noqa: PLR0913 - a name, two ways, and how to judge them
    name: str,
    ours: Callable[[], Awaitable[float]],
    by_hand: Callable[[], Awaitable[float]],
    *,
    times: int,
    allowed: float,
    unit: str = "ms",
    warm_up: int = 3,
) -> Comparison:
    """Run both `times` times in turn, after `warm_up` runs that do not count."""
    mine: list[float] = []
    theirs: list[float] = []
    for turn in range(times + warm_up):
        first, second = (ours, by_hand) if turn % 2 else (by_hand, ours)
        a, b = await first(), await second()
        if turn >= warm_up:
            mine.append(a if first is ours else b)
            theirs.append(b if first is ours else a)
    return Comparison(name, mine, theirs, allowed, unit)


class Stopwatch:
    """Milliseconds since it was made."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    @property
    def ms(self) -> float:
        """The milliseconds so far."""
        return (time.perf_counter() - self._started) * 1000

"""How long things may take: a span shared by all the requests of one procedure, and back-off."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from opencode_mcp.clock import Clock

#: pauses between tries of the same intent: doubled each time, within these bounds
_FIRST_PAUSE_S = 2.0
_MAX_PAUSE_S = 60.0


class Backoff:
    """How long each intent waits before it is tried again; known to this process only."""

    def __init__(self) -> None:
        self._failures: Counter[str] = Counter()

    def failed(self, name: str) -> timedelta:
        """Note a failure and return how long to wait; spread, so that many do not march."""
        longest = min(_FIRST_PAUSE_S * 2.0 ** min(self._failures[name], 10), _MAX_PAUSE_S)
        self._failures[name] += 1
        spread = random.uniform(0.75, 1.0)  # noqa: S311 - no secret depends on it
        return timedelta(seconds=longest * spread)

    def forget(self, name: str) -> None:
        """Note that the intent was carried out, or is gone."""
        self._failures.pop(name, None)


class BudgetSpentError(Exception):
    """The time of a procedure is up. Caught by the procedure that owns the budget."""


class Budget:
    """`seconds` from now, measured monotonically; `limit` may leave less at any time."""

    def __init__(
        self,
        clock: Clock,
        seconds: float,
        *,
        started: float | None = None,
        limit: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        self._started = clock.monotonic() if started is None else started
        self._seconds = seconds
        self._limit = limit

    def under(self, limit: Callable[[], float]) -> Budget:
        """Return this budget with a limit: the seconds that a lease has left, say."""
        return Budget(self._clock, self._seconds, started=self._started, limit=limit)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the budget began."""
        return self._clock.monotonic() - self._started

    def age_s(self, moment: datetime) -> float:
        """Return the seconds since a moment that was written down; less than 0: a clock jumped."""
        return (self._clock.now() - moment).total_seconds()

    def left_s(self) -> float:
        """Return the seconds that remain.

        Raises BudgetSpentError when there are none, and what the limit raises.
        """
        left = self._seconds - self.elapsed_s
        if left <= 0:
            raise BudgetSpentError
        return left if self._limit is None else min(left, self._limit())

    async def pause(self, seconds: float) -> None:
        """Wait for `seconds`, or raise BudgetSpentError if they do not fit."""
        if seconds >= self.left_s():
            raise BudgetSpentError
        await self._clock.sleep(seconds)

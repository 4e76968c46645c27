"""A clock that a test sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from opencode_mcp.clock import Clock

START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


class HandClock(Clock):
    """Stands still unless it is moved: `seconds` after `START`."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

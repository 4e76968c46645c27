"""Time, passed in: whatever waits or stamps takes a Clock, so that tests choose the time."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime


class Clock:
    """The real time: UTC for what is stored, monotonic seconds for what is measured."""

    def now(self) -> datetime:
        """Return this moment, aware, in UTC. It may jump: never measure with it."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never go back; only differences mean anything."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        await asyncio.sleep(seconds)

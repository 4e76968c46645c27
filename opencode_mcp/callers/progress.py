"""Progress while a call watches: at least every 10 s, and none after the answer (contract 2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastmcp import Context

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.requests import RepeatableCall

#: well under the 10 s that the contract promises
INTERVAL_S = 5.0
_MAX_CHARS = 200


class Reporter:
    """Sends progress for one call. Without a progress token FastMCP sends nothing."""

    def __init__(self, context: Context, call: RepeatableCall | None = None) -> None:
        #: the call's own, for what else it must ask its client
        self.context = context
        self._clock: Clock | None = None
        self._began = self._told = 0.0
        #: what is known of its request-id; None: it has none
        self.call = call
        self._value = 0.0

    def begin(self, clock: Clock) -> None:
        """Take this moment for the beginning of the watch; before it nothing is told."""
        self._clock = clock
        self._began = self._told = clock.monotonic()

    @property
    def due_s(self) -> float:
        """Seconds until the next message is due; 0: it is."""
        if self._clock is None:
            return INTERVAL_S
        return max(0.0, self._told + INTERVAL_S - self._clock.monotonic())

    async def tell(self, text: str) -> None:
        """Send one progress message; the value is the seconds so far, and only ever rises."""
        if self._clock is None:
            return
        self._told = self._clock.monotonic()
        self._value = max(self._value + 0.001, round(self._told - self._began, 3))
        await self.context.report_progress(self._value, message=text[:_MAX_CHARS])

    async def tell_if_due(self, text: str) -> None:
        """Send it if the last one was long enough ago, however much happened meanwhile."""
        if self.due_s <= 0:
            await self.tell(text)

"""Progress while a call watches: at least every 10 s, and none after the answer (contract 2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastmcp import Context

    from opencode_mcp.engine.requests import RepeatableCall

#: well under the 10 s that the contract promises
INTERVAL_S = 5.0


class Reporter:
    """Sends progress for one call. Without a progress token FastMCP sends nothing."""

    def __init__(self, context: Context, call: RepeatableCall | None = None) -> None:
        #: the call's own, for what else it must ask its client
        self.context = context
        #: what is known of its request-id; None: it has none
        self.call = call
        self._value = 0.0

    async def tell(self, elapsed_s: float, text: str) -> None:
        """Send one progress message; the value is the seconds so far, and only ever rises."""
        self._value = max(self._value + 0.001, round(elapsed_s, 3))
        await self.context.report_progress(self._value, message=text[:200])

    async def tell_waiting(self) -> None:
        """Send one progress message about a person who has not answered yet."""
        await self.tell(self._value, "waiting for a person's answer")

"""Progress while a call goes on: at least every 10 s, and none after its answer (contract 2.1).

Clients give up on a call that is silent, some after a minute. Whoever watches a turn tells what it
does; all other waits (an OpenCode that starts or hangs, a stop, an end) are told of by `heard`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from opencode_mcp.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from fastmcp import Context

    from opencode_mcp.engine.requests import RepeatableCall

T = TypeVar("T")

#: how often who watches a turn tells of it; well under the 10 s that the contract promises
INTERVAL_S = 5.0
#: so long a call may be silent; longer than INTERVAL_S, so that the better text comes first
SILENCE_S = 7.0
_MAX_CHARS = 200


class Reporter:
    """Sends progress for one call. Without a progress token FastMCP sends nothing."""

    def __init__(
        self, context: Context, call: RepeatableCall | None = None, clock: Clock | None = None
    ) -> None:
        #: the call's own, for what else it must ask its client
        self.context = context
        #: what is known of its request-id; None: it has none
        self.call = call
        self._clock = clock or Clock()
        self._value = 0.0
        self._began = self._told = self._clock.monotonic()

    def begin(self, clock: Clock) -> None:
        """Take this moment for the beginning of the watch."""
        self._clock = clock
        self._began = self._told = clock.monotonic()

    @property
    def due_s(self) -> float:
        """Seconds until the next message is due; 0: it is."""
        return max(0.0, self._told + INTERVAL_S - self._clock.monotonic())

    async def tell(self, text: str) -> None:
        """Send one progress message; the value is the seconds so far, and only ever rises."""
        self._told = self._clock.monotonic()
        self._value = max(self._value + 0.001, round(self._told - self._began, 3))
        await self.context.report_progress(self._value, message=text[:_MAX_CHARS])

    async def tell_if_due(self, text: str) -> None:
        """Send it if the last one was long enough ago, however much happened meanwhile."""
        if self.due_s <= 0:
            await self.tell(text)

    async def heard(self, work: Coroutine[object, object, T]) -> T:
        """Do `work`, and let its client hear of it whenever it was silent for SILENCE_S."""
        speaking = asyncio.create_task(self._speak())
        try:
            return await work
        finally:
            speaking.cancel()
            # a client that cannot be told does not fail the call
            await asyncio.gather(speaking, return_exceptions=True)

    async def _speak(self) -> None:
        while True:
            left_s = self._told + SILENCE_S - self._clock.monotonic()
            if left_s > 0:
                await self._clock.sleep(left_s)
            else:
                await self.tell("at work: waiting for OpenCode")

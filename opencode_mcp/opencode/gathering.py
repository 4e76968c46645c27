"""Take a stream's chunks as they come; in a flood, let them gather in the socket first.

OpenCode sends each streamed token as a chunk of its own, and waking up for a chunk costs many times
what reading its events does (`make bench`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from opencode_mcp.clock import Clock

#: so many chunks a second are no flood: several short turns at once make them
_RATE = 250.0
#: nor are so many at once
_BURST = 100.0
#: how long a flood gathers; the end of a turn is heard that much later at most
_GATHER_S = 0.05


async def gathered(
    chunks: AsyncIterator[bytes],
    transport_now: Callable[[], asyncio.BaseTransport | None],
    clock: Clock,
) -> AsyncIterator[bytes]:
    """Give the chunks as they come, and in a flood one each `_GATHER_S`.

    It is the transport that is held back: were it only this reader, the loop would wake up for each
    chunk all the same. `transport_now`: None once the stream's connection is another's.
    """
    allowance, seen_at = _BURST, clock.monotonic()
    async for chunk in chunks:
        yield chunk
        now = clock.monotonic()
        allowance = min(_BURST, max(allowance, 0) + (now - seen_at) * _RATE) - 1
        seen_at = now
        transport = transport_now()
        if allowance < 0 and isinstance(transport, asyncio.ReadTransport):
            transport.pause_reading()
            try:
                await clock.sleep(_GATHER_S)
            finally:
                transport.resume_reading()
            seen_at = clock.monotonic()  # the flood goes on until chunks are far between again

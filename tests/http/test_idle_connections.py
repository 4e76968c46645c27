"""A connection that nobody uses for a while is still good for the next request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from tests.support.bridges import Bridges

#: uvicorn's own limit is 5 s, and TypeScript clients were seen to lose calls by it
_IDLE_S = 6.0
_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def test_a_connection_is_kept_for_longer_than_clients_leave_theirs_idle(
    bridges: Bridges,
) -> None:
    """ours: what a client sends on a connection that we just close is lost."""
    server = await bridges.http()
    port = urlsplit(server.origin).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(_REQUEST)
        first = await reader.readuntil(b'"ok"}')
        try:
            closed = await asyncio.wait_for(reader.read(1), _IDLE_S) == b""
        except TimeoutError:  # nothing was said, so it is open
            closed = False
        assert not closed

        writer.write(_REQUEST)
        second = await reader.readuntil(b'"ok"}')
        assert first.startswith(b"HTTP/1.1 200")
        assert second.startswith(b"HTTP/1.1 200")
    finally:
        writer.close()
        await writer.wait_closed()

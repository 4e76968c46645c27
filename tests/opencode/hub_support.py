"""What the tests of the event hub share: a client, and what they wait for before they look."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from opencode_mcp.opencode.client import OpencodeClient

if TYPE_CHECKING:
    from opencode_mcp.opencode.events import EventHub
    from opencode_mcp.opencode.watch import Watch
    from tests.opencode.fake_server import FakeServer, Stream

#: how long a test waits for what must come
SOON_S = 5.0


def client_of(server: FakeServer) -> OpencodeClient:
    """Make a client of that server."""
    return OpencodeClient(server.url, username="opencode", password="pw", request_timeout_s=5)


async def opened(server: FakeServer, watch: Watch) -> Stream:
    """Wait until the stream is up and the watch knows it."""
    async with asyncio.timeout(SOON_S):
        stream = await server.streams.get()
    assert await watch.wait(SOON_S)
    return stream


async def settled(stream: Stream, hub: EventHub) -> None:
    """Wait until the hub has read all that was sent: streams are in order."""
    with hub.watch("ses_marker") as marker:
        stream.send("session.idle", sessionID="ses_marker")
        assert await marker.wait(SOON_S)

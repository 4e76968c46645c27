"""A server is deployed anew: clients that were connected to it go on, at the same address.

Case B35. They send the session id of the server before; several never shake hands again.
"""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests.support.bridge import Era
    from tests.support.bridges import Bridges
    from tests.support.http_bridge import Reply

_STALE = {"mcp-session-id": "of-the-server-before", "mcp-protocol-version": "2025-06-18"}
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "one that was connected", "version": "1"},
}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_connected_client_goes_on_after_the_server_was_replaced(
    bridges: Bridges, project: Path, mode: Era
) -> None:
    """With its connection, its protocol version and whatever it keeps of the server before."""
    first = await bridges.http_process()
    caller = await first.caller(mode=mode)
    session_id = (await caller.start("SAY:before", project)).session_id
    first.signal(signal.SIGTERM)
    assert await first.exit_code() == 0
    second = await bridges.http_process(PORT=first.origin.rpartition(":")[2])
    assert second.origin == first.origin
    status = await caller.status(session_id)
    reply = await caller.call("opencode-reply", sessionId=session_id, prompt="SAY:after")
    assert status.status == "completed"
    assert (reply.structured["turn"], "after" in reply.text) == (2, True)
    assert await caller.listed() == {session_id: "idle"}


async def test_a_session_id_of_before_is_no_fault_in_any_request(bridges: Bridges) -> None:
    """A new handshake included; and no such id is given out that could become stale."""
    server = await bridges.http()
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _HELLO}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    for request in (hello, listing):
        reply = await server.post(request, **_STALE)
        assert "result" in _message(reply)
        assert "mcp-session-id" not in reply.headers
    assert (await server.post(ready, **_STALE)).status == 202


def _message(reply: Reply) -> Json:
    assert reply.status == 200, reply.text
    (line,) = [line for line in reply.text.splitlines() if line.startswith("data:")]
    found: Json = json.loads(line.removeprefix("data:"))
    return found

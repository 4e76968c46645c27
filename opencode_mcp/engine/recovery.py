"""What a process does for those that died before it."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from opencode_mcp.log_events import Event, tell

if TYPE_CHECKING:
    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.instances import Connection
    from opencode_mcp.opencode.client import OpencodeClient
    from opencode_mcp.opencode.models import RemoteSession
    from opencode_mcp.records import StartIntent
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)

#: the metadata key under which OpenCode keeps the token of a start
TOKEN_KEY = "opencode-mcp"  # noqa: S105 - a name, not a secret
#: older than any start that may still be under way (a request's limit is at most some minutes)
OLD_START = timedelta(minutes=15)


async def find_start(client: OpencodeClient, start: StartIntent) -> RemoteSession | None:
    """Return the session that a start made, if it made one: a lost answer is settled by this."""
    for session in await client.sessions(start.directory, limit=100):
        if session.metadata.get(TOKEN_KEY) == start.token:
            return session
    return None


async def settle_old_starts(store: Store, connection: Connection, clock: Clock) -> None:
    """Delete sessions that were created for a process which died before it could track them.

    They never got a prompt, so nothing runs in them. Raises OpencodeError, StoreError: what is left
    then is tried again.
    """
    for start in await store.open_starts(connection.instance, clock.now() - OLD_START):
        left = await find_start(connection.client, start)
        if left is not None:
            await connection.client.delete_session(left.id)
            tell(log, Event.UNTRACKED_SESSION_DELETED, session_id=left.id, owner=start.owner)
        await store.drop_start(start.token)

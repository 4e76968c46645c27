"""Whose data an OpenCode has: a database may have been copied beside another one.

There, every session of ours is a 404, and runs on where it is (contract §2.3, step 7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.errors import InstanceUnreachableError
from opencode_mcp.opencode_errors import OpencodeError
from opencode_mcp.records import InstanceKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from opencode_mcp.engine.instances import Connection
    from opencode_mcp.records import Session
    from opencode_mcp.store.store import Store

#: so many of the address's other sessions are looked for
_WITNESSES = 20


async def refuse_foreign_data(
    store: Store, connection: Connection, session: Session, left_s: Callable[[], float | None]
) -> None:
    """Raise InstanceUnreachableError unless a 404 for `session` means that it was deleted.

    `left_s`: how long a request may take now; None: as long as ever.
    """
    if await data_is_the_sessions(store, connection, session, left_s):
        return
    msg = (
        f"this OpenCode knows none of our sessions: other data? It answers 404 for {session.id},"
        " which proves nothing here, so nothing of it is taken for over or ended"
    )
    raise InstanceUnreachableError(msg, session_id=session.id)


async def data_is_the_sessions(
    store: Store, connection: Connection, session: Session, left_s: Callable[[], float | None]
) -> bool:
    """Whether this OpenCode provably has the data that the session was in.

    Only then does its 404 mean "deleted". Managed: the UUID in OpenCode's data folder, which is
    what led us to this instance. Attach: it said itself that it deleted the session, or another
    session of the same address is known there.
    """
    if connection.instance.kind is InstanceKind.MANAGED:
        return True
    if connection.events.heard_deleted(session.id):
        return True
    for other in await store.witnesses(session, _WITNESSES):
        try:
            await connection.client.session(other.id, timeout_s=left_s())
        except OpencodeError:
            continue
        return True
    return False

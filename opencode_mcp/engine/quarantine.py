"""A session is quarantined while the outcome of something we sent is unknown (contract §3).

Only evidence frees it: the doubtful prompt's message was read, so OpenCode has it; or the instance
it was sent to is proven dead and the message is not there, so nobody ever will have it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from opencode_mcp.engine.telling import ids_of
from opencode_mcp.errors import StaleSessionError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.log_events import Event, tell
from opencode_mcp.opencode_errors import OpencodeError, OpencodeNotFoundError

if TYPE_CHECKING:
    from opencode_mcp.engine.observing import Observer
    from opencode_mcp.records import Session
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)


async def free_if_settled(store: Store, observer: Observer, *, moved: bool) -> Session:
    """Free the observer's session if there is evidence, and return it as it then is.

    `moved`: the instance that the prompt was sent to is proven dead.
    """
    session = observer.session
    if session.phase is not Phase.QUARANTINED:
        return session
    try:
        await observer.connection.client.message(session.id, observer.turn.message_id)
    except OpencodeNotFoundError:
        if not moved:
            return session
        observer.turn = await store.refuse_turn(observer.turn)
    except OpencodeError:
        return session
    try:
        observer.session = await store.move(session, Phase.ACTIVE)
    except StaleSessionError:  # somebody else freed or ended it
        observer.session = await store.resolve(session.id) or session
    else:
        tell(log, Event.SESSION_FREED, **ids_of(session, observer.turn))
    return observer.session

"""What an operator may do besides what callers may: say where sessions are, and give one up.

Both take the operator's word for something that this program cannot see. So they say what they
take for true, and they keep out of the way of servers at work on the same database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opencode_mcp.engine.ends import given_up_json
from opencode_mcp.engine.leases import LEASE_S, Leases
from opencode_mcp.errors import SessionBusyError, SessionNotFoundError
from opencode_mcp.opencode_errors import OpencodeNotFoundError
from opencode_mcp.records import Tombstone
from opencode_mcp.store.rebinding import Place, Rebound

if TYPE_CHECKING:
    from collections.abc import Callable

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.instances import Connection
    from opencode_mcp.records import EndAction, Instance, Session
    from opencode_mcp.store.store import Store

__all__ = ["Known", "Operator", "Place", "Rebound", "known_of"]

_POLL_S = 0.25
#: a lease that is not renewed is free after `LEASE_S`; one attempt of an end rarely takes longer
_LEASE_PATIENCE_S = LEASE_S + 10.0
#: so many of an instance's sessions are looked for elsewhere
_LOOKED_FOR = 20
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Known:
    """How many sessions were looked for in an OpenCode, and how many it knows."""

    looked_for: int
    found: int


async def known_of(store: Store, old: Instance, connection: Connection) -> Known:
    """Return how many of an instance's sessions another OpenCode knows. Raises OpencodeError."""
    ids = await store.sessions_of(old.id, _LOOKED_FOR)
    found = 0
    for session_id in ids:
        try:
            await connection.client.session(session_id)
        except OpencodeNotFoundError:
            continue
        found += 1
    return Known(len(ids), found)


class Operator:
    """Acts for whoever types a command on the machine of the database."""

    def __init__(
        self, *, store: Store, clock: Clock, holder: str, is_dead_holder: Callable[[str], bool]
    ) -> None:
        """`holder`: this process's name. `is_dead_holder(name)`: whether its death is proven."""
        self._store = store
        self._clock = clock
        self._is_dead_holder = is_dead_holder
        self._leases = Leases(store=store, clock=clock, holder=holder, is_dead=is_dead_holder)

    def is_alive(self, holder: str) -> bool:
        """Whether the process of that name is not proven dead."""
        return not self._is_dead_holder(holder)

    async def forget(
        self, session: Session, default: EndAction, *, on_wait: Callable[[], None]
    ) -> Session:
        """Stop tracking a session without proof of its end; return it as it was.

        Nothing is sent to OpenCode. Under the session's lease, as an end: whoever is at work on
        its end is waited for (`on_wait` is called once), at most 30 s. Raises SessionBusyError
        if that was not enough, SessionNotFoundError if it has ended meanwhile.
        """
        deadline = self._clock.monotonic() + _LEASE_PATIENCE_S
        is_waiting = False
        while (held := await self._leases.take(session.id)) is None:
            if await self._store.resolve(session.id) is None:
                msg = f"session {session.id} has just ended"
                raise SessionNotFoundError(msg, session_id=session.id)
            if self._clock.monotonic() > deadline:
                msg = (
                    f"a server has been at work on the end of {session.id} for"
                    f" {_LEASE_PATIENCE_S:.0f} s: try again, or stop that server first"
                )
                raise SessionBusyError(msg, session_id=session.id)
            if not is_waiting:
                is_waiting = True
                on_wait()
            await self._clock.sleep(_POLL_S)
        ending = session.ending
        tombstone = Tombstone(
            session_id=session.id,
            owner=session.owner,
            action=ending.action if ending else default,
            ended_at=self._clock.now(),
            answer_json=given_up_json(),
        )
        async with held:
            forgotten = await self._store.give_up(tombstone, held.fence)
            held.is_gone = True
        return forgotten

    async def rebind(self, old: Instance, place: Place) -> Rebound:
        """Move all sessions of an instance to another one.

        Raises SessionBusyError while a live server runs a turn of one of them, or works on its
        end: what it knows of it, it knows from the old instance. StaleSessionError: one began to
        at this moment.
        """
        holders = await self._store.holders(old.id)
        dead = frozenset(name for _, name in holders if self._is_dead_holder(name))
        held = sorted({session_id for session_id, name in holders if name not in dead})
        if held:
            names = ", ".join(held[:_MOST_NAMED])
            more = f" and {len(held) - _MOST_NAMED} more" if len(held) > _MOST_NAMED else ""
            msg = (
                f"a server that runs now is at work on {names}{more}: stop the servers that use"
                " the old OpenCode (or cancel these turns), then try again; nothing was moved"
            )
            raise SessionBusyError(msg)
        return await self._store.rebind(old.id, place, dead)

"""The right to act on a session's end, also while other processes of ours share the database.

No wall clock is in it. A lease is taken over at once when its holder is proven dead, and otherwise
when it was seen unchanged for `LEASE_S` on the observer's own monotonic clock: its holder hangs,
or is frozen. The holder counts from *before* it last renewed the lease, so it stops first; the
fence keeps it from writing afterwards. What remains: a process that is frozen between this check
and the sending may send one request too late, an idempotent one (docs/ending.md).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Self

from opencode_mcp.errors import LeaseLostError, StoreError
from opencode_mcp.log_events import Event, tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from opencode_mcp.clock import Clock
    from opencode_mcp.records import Lease
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)

#: how long a lease holds that is not renewed; no request made under it may take longer
LEASE_S = 20.0
#: so many times within that it is renewed, so that a slow disk does not cost it
_RENEWALS = 4
_MAX_SEEN = 10_000


class Leases:
    """Takes leases for this process, and judges those of others."""

    def __init__(
        self, *, store: Store, clock: Clock, holder: str, is_dead: Callable[[str], bool]
    ) -> None:
        """`holder`: this process's name. `is_dead(name)`: whether that one's death is proven."""
        self._store = store
        self._clock = clock
        self._holder = holder
        self._is_dead = is_dead
        #: others' leases as they were first seen, and when, on our monotonic clock
        self._seen: dict[str, tuple[Lease, float]] = {}

    async def take(self, session_id: str) -> HeldLease | None:
        """Take the session's lease; None: another works on it, or the session has ended."""
        over = await self._store.lease(session_id)
        if not self._is_free(session_id, over):
            return None
        since = self._clock.monotonic()
        lease = await self._store.take_lease(session_id, self._holder, over)
        return None if lease is None else HeldLease(self._store, self._clock, lease, since)

    async def is_with_another(self, session_id: str) -> bool:
        """Whether another process of ours holds the session's lease, and may be at work."""
        return not self._is_free(session_id, await self._store.lease(session_id))

    def _is_free(self, session_id: str, lease: Lease | None) -> bool:
        """Whether nobody else acts under this lease; what is not known yet is not free."""
        holder = None if lease is None else lease.holder
        if lease is None or holder is None or holder == self._holder or self._is_dead(holder):
            self._seen.pop(session_id, None)
            return True
        now = self._clock.monotonic()
        seen, since = self._seen.setdefault(session_id, (lease, now))
        if len(self._seen) > _MAX_SEEN:  # most of them ended elsewhere
            del self._seen[next(iter(self._seen))]
        if seen != lease:
            self._seen[session_id] = (lease, now)
            return False
        if now - since < LEASE_S:
            return False
        tell(log, Event.LEASE_TAKEN_OVER, session_id=session_id, holder=holder)
        return True


class HeldLease:
    """A lease in force: an async context manager that renews it and gives it back."""

    def __init__(self, store: Store, clock: Clock, lease: Lease, since: float) -> None:
        """`since`: when, on `clock.monotonic`, we began to take it."""
        #: the session has ended, and the lease went with it
        self.is_gone = False
        self._store = store
        self._clock = clock
        self._lease = lease
        self._until = since + LEASE_S
        self._renewing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._renewing = asyncio.create_task(self._renew(), name="lease")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give it back, however the work ended: the next one must not wait for us."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait({self._renewing})
        if not self.is_gone:
            await self._store.release_lease(self._lease)

    @property
    def fence(self) -> int:
        """The number that guards every write made under this lease."""
        return self._lease.fence

    def left_s(self) -> float:
        """Return how long a request may take now, in seconds. Raises LeaseLostError."""
        left_s = self._until - self._clock.monotonic()
        if left_s <= 0:
            msg = f"the lease of session {self._lease.session_id} was not renewed in time"
            raise LeaseLostError(msg)
        return left_s

    async def _renew(self) -> None:
        while True:
            await self._clock.sleep(LEASE_S / _RENEWALS)
            since = self._clock.monotonic()
            try:
                await self._store.renew_lease(self._lease)
            except LeaseLostError:
                self._until = since
                return
            except StoreError as error:  # tried again while it holds
                session_id = self._lease.session_id
                tell(log, Event.LEASE_NOT_RENEWED, session_id=session_id, why=str(error))
            else:
                self._until = since + LEASE_S

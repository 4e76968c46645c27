"""Forgets what is remembered for a time, once that is over: at the start, and now and then.

How sessions ended, for `TOMBSTONE_DAYS`; what request-ids stand for, until they expire.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from opencode_mcp.errors import StoreError
from opencode_mcp.log_events import Event, tell

if TYPE_CHECKING:
    from opencode_mcp.clock import Clock
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)

#: days are what is promised
PURGE_EVERY_S = 3600.0


async def purge(store: Store, days: int, clock: Clock) -> None:
    """Forget the tombstones older than `days`, and expired request-ids. Raises StoreError."""
    await store.purge_tombstones(clock.now() - timedelta(days=days))
    await store.purge_requests(clock.now())


async def keep_purging(store: Store, days: int, clock: Clock) -> None:
    """Do it for as long as this process runs; a database that cannot be written now is no end."""
    while True:
        await clock.sleep(PURGE_EVERY_S)
        try:
            await purge(store, days, clock)
        except StoreError as error:
            tell(log, Event.WORK_UNREADABLE, why=str(error))

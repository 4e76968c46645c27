"""The tracking database: all that this program remembers, behind one object."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from opencode_mcp.clock import Clock
from opencode_mcp.store.connection import open_database
from opencode_mcp.store.ends import Ends
from opencode_mcp.store.instances import Instances, Starts
from opencode_mcp.store.keys import Keys
from opencode_mcp.store.leases import Leases
from opencode_mcp.store.rebinding import Rebinding
from opencode_mcp.store.requests import Requests
from opencode_mcp.store.sessions import Sessions
from opencode_mcp.store.tallies import Tallies
from opencode_mcp.store.turns import Turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class Store(Instances, Starts, Sessions, Turns, Requests, Ends, Leases, Keys, Tallies, Rebinding):
    """Every read and every write. Each base class is the part around one table.

    Each write is one durable transaction: when it returns, a power failure cannot undo it. A
    cancelled caller does not stop a write that was begun. Any number of Stores, of any number of
    processes, may be open on one file. Every method may raise StoreUnusableError.
    """

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path, *, clock: Clock | None = None) -> AsyncIterator[Store]:
        """Open the database at `path`; make it (file 0600, folder 0700) and migrate it first.

        Leaving waits for the writes in flight. Raises StoreUnusableError, SchemaTooNewError,
        MigrationError.
        """
        clock = clock or Clock()
        async with open_database(path, clock) as database:
            yield cls(database, clock)

"""Leases: the right to act on one session's end. No clock in them: death is proven, not guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.store.changes import load
from opencode_mcp.store.connection import Part
from opencode_mcp.store.rows import lease_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from opencode_mcp.records import Lease
    from opencode_mcp.store.connection import Transaction

_SELECT = "SELECT * FROM leases WHERE session_id = ?"


class Leases(Part):
    """Table `leases`."""

    async def take_lease(
        self, session_id: str, holder: str, may_take_from: Callable[[str], bool]
    ) -> Lease | None:
        """Take the session's lease; None: another holds it, or the session has ended.

        `may_take_from(other)` tells whether the death of `other` is proven; it is asked outside
        the transaction, since death is final. The same holder takes it again with a higher fence.
        """
        row = await self._database.row(_SELECT, [session_id])
        held_by: str | None = row["holder"] if row else None
        if held_by not in {None, holder} and not may_take_from(str(held_by)):
            return None

        async def work(write: Transaction) -> Lease | None:
            if await load(write, session_id) is None:
                return None
            now = await write.row(_SELECT, [session_id])
            # Somebody who took it since our look lives: whose death we proved does not return.
            if now and now["holder"] not in {None, holder, held_by}:
                return None
            await write.run(
                "INSERT INTO leases (session_id, holder, fence) VALUES (?, ?, 1)"
                " ON CONFLICT (session_id) DO UPDATE"
                " SET holder = excluded.holder, fence = fence + 1",
                [session_id, holder],
            )
            taken = await write.row(_SELECT, [session_id])
            return lease_of(taken) if taken else None

        return await self._database.write(work)

    async def lease_holder(self, session_id: str) -> str | None:
        """Return who holds the session's lease, or None."""
        row = await self._database.row(_SELECT, [session_id])
        return row["holder"] if row else None

    async def release_lease(self, lease: Lease) -> None:
        """Give the lease back; no matter if it was taken over or went with its session."""

        async def work(write: Transaction) -> None:
            await write.run(
                "UPDATE leases SET holder = NULL WHERE session_id = ? AND holder = ? AND fence = ?",
                [lease.session_id, lease.holder, lease.fence],
            )

        await self._database.write(work)

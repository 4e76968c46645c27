"""Leases: the right to act on one session's end. No clock in them (`engine.leases`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opencode_mcp.errors import LeaseLostError
from opencode_mcp.store.changes import load, save
from opencode_mcp.store.connection import Part
from opencode_mcp.store.rows import lease_of

if TYPE_CHECKING:
    from opencode_mcp.records import Lease
    from opencode_mcp.store.connection import Transaction

_SELECT = "SELECT * FROM leases WHERE session_id = ?"


class Leases(Part):
    """Table `leases`."""

    async def lease(self, session_id: str) -> Lease | None:
        """Return the session's lease as it is now; None: nobody ever took it, or it has ended."""
        row = await self._database.row(_SELECT, [session_id])
        return lease_of(row) if row else None

    async def take_lease(self, session_id: str, holder: str, over: Lease | None) -> Lease | None:
        """Take the session's lease; None: another holds it, or the session has ended.

        Where an end is pending, a further attempt of it is counted. `over`: another's lease as it
        was read, known to be in force no more: it is taken over if it still is just that. The same
        holder takes its own again with a higher fence.
        """

        async def work(write: Transaction) -> Lease | None:
            session = await load(write, session_id)
            if session is None:
                return None
            row = await write.row(_SELECT, [session_id])
            now = lease_of(row) if row else None
            if now is not None and now.holder not in {None, holder} and now != over:
                return None
            await write.run(
                "INSERT INTO leases (session_id, holder, fence) VALUES (?, ?, 1)"
                " ON CONFLICT (session_id) DO UPDATE"
                " SET holder = excluded.holder, fence = fence + 1, renewals = 0",
                [session_id, holder],
            )
            if session.ending is not None:
                attempt = session.ending.attempt + 1
                ending = replace(session.ending, attempt=attempt, last_error=None)
                await save(write, session, replace(session, ending=ending))
            taken = await write.row(_SELECT, [session_id])
            return lease_of(taken) if taken else None

        return await self._database.write(work)

    async def renew_lease(self, lease: Lease) -> None:
        """Show that its holder works. Raises LeaseLostError if it is not in force any more."""

        async def work(write: Transaction) -> None:
            renewed = await write.run(
                "UPDATE leases SET renewals = renewals + 1"
                " WHERE session_id = ? AND holder = ? AND fence = ?",
                [lease.session_id, lease.holder, lease.fence],
            )
            if not renewed:
                msg = f"lease {lease.fence} of session {lease.session_id} is another's, or it ended"
                raise LeaseLostError(msg)

        await self._database.write(work)

    async def release_lease(self, lease: Lease) -> None:
        """Give the lease back; no matter if it was taken over or went with its session."""

        async def work(write: Transaction) -> None:
            await write.run(
                "UPDATE leases SET holder = NULL WHERE session_id = ? AND holder = ? AND fence = ?",
                [lease.session_id, lease.holder, lease.fence],
            )

        await self._database.write(work)

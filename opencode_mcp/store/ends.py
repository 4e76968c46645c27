"""Ends: accepted, tried, confirmed, remembered."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from opencode_mcp.errors import EndConflictError, SessionNotFoundError, StaleSessionError
from opencode_mcp.lifecycle import Phase, check_move
from opencode_mcp.records import EndAction, Ending, StopReason
from opencode_mcp.store.changes import load, load_under_lease, save
from opencode_mcp.store.connection import Part
from opencode_mcp.store.rows import session_of, to_text, tombstone_of, tombstone_values

if TYPE_CHECKING:
    from datetime import datetime

    from opencode_mcp.records import Session, Tombstone
    from opencode_mcp.store.connection import Transaction


#: farther ahead than any pause between two tries
_FARTHEST = timedelta(minutes=10)

# Nobody used it since: no prompt came, and none that came before was at work. A turn that nobody
# could see to be over (in quarantine, say) counts as at work until its deadline.
_IDLE = """
    SELECT * FROM sessions WHERE phase <> 'ending' AND updated_at < :before AND NOT EXISTS (
        SELECT 1 FROM turns WHERE session_id = sessions.id
        AND coalesce(finished_at, deadline_at) >= :before)
"""


class Ends(Part):
    """The end columns of table `sessions`, and table `tombstones`."""

    async def begin_end(
        self, session_id: str, action: EndAction | None, default: EndAction
    ) -> Session:
        """Accept an end, or join the one accepted before; return the session.

        A pending end keeps its action if `action` is None or the same; a delete replaces an
        archive. Raises EndConflictError for an archive over a delete; SessionNotFoundError.
        """
        now = self._clock.now()

        async def work(write: Transaction) -> Session:
            session = await load(write, session_id)
            if session is None:
                msg = f"no session {session_id} is tracked"
                raise SessionNotFoundError(msg, session_id=session_id)
            check_move(session.phase, Phase.ENDING)
            ending = _joined(session, action, default, now)
            if ending == session.ending:
                return session
            return await _accept(write, session, ending, now)

        return await self._database.write(work)

    async def idle_sessions(self, before: datetime, limit: int) -> list[Session]:
        """Return sessions that nobody used since `before`, the longest unused first."""
        rows = await self._database.rows(
            f"{_IDLE} ORDER BY updated_at LIMIT :limit", {"before": to_text(before), "limit": limit}
        )
        return [session_of(row) for row in rows]

    async def begin_idle_end(self, session_id: str, before: datetime, action: EndAction) -> bool:
        """Accept the end of a session if nobody used it since `before`; whether that was so."""
        now = self._clock.now()

        async def work(write: Transaction) -> bool:
            values = {"before": to_text(before), "id": session_id}
            row = await write.row(f"{_IDLE} AND id = :id", values)
            if row is None:
                return False
            session = session_of(row)
            check_move(session.phase, Phase.ENDING)
            await _accept(write, session, Ending(action=action, since=now), now)
            return True

        return await self._database.write(work)

    async def note_failure(self, session_id: str, fence: int, error: str) -> None:
        """Record why the attempt under way did not come through. Raises LeaseLostError."""

        async def work(write: Transaction) -> None:
            session, ending = await _ending(write, session_id, fence)
            noted = replace(ending, last_error=error)
            await save(write, session, replace(session, ending=noted))

        await self._database.write(work)

    async def note_next_try(self, session_id: str, at: datetime, why: str) -> None:
        """Record when a pending end is tried again, and why; no matter if the session is gone."""

        async def work(write: Transaction) -> None:
            session = await load(write, session_id)
            if session is not None and session.ending is not None:
                noted = replace(session.ending, next_at=at, last_error=why)
                await save(write, session, replace(session, ending=noted))

        await self._database.write(work)

    async def endings(self, now: datetime, limit: int) -> list[Session]:
        """Return sessions whose end is accepted, not confirmed, and due; the longest due first.

        What is to be tried in the far future is due: a clock was set back since that was written.
        """
        rows = await self._database.rows(
            "SELECT * FROM sessions WHERE phase = 'ending' AND"
            " (end_next_at IS NULL OR end_next_at <= :now OR end_next_at > :far)"
            " ORDER BY coalesce(end_next_at, end_since), end_since LIMIT :limit",
            {"now": to_text(now), "far": to_text(now + _FARTHEST), "limit": limit},
        )
        return [session_of(row) for row in rows]

    async def note_delete_sent(self, session_id: str, fence: int) -> None:
        """Record, before it is sent, that a delete of ours went out. Raises LeaseLostError."""

        async def work(write: Transaction) -> None:
            session, ending = await _ending(write, session_id, fence)
            noted = replace(ending, delete_sent=True)
            await save(write, session, replace(session, ending=noted))

        await self._database.write(work)

    async def finish_end(self, tombstone: Tombstone, fence: int) -> None:
        """Forget a session whose end is confirmed: its tombstone stays, all else goes.

        Its aliases stay, too, and lead to the tombstone. Raises LeaseLostError; StaleSessionError
        if another action than the tombstone's is wanted by now (a delete replaced an archive).
        """

        async def work(write: Transaction) -> None:
            session = await load_under_lease(write, tombstone.session_id, fence)
            check_move(session.phase, Phase.ENDED)
            if session.ending is None or session.ending.action is not tombstone.action:
                msg = f"session {session.id} is to be ended otherwise by now"
                raise StaleSessionError(msg)
            await _bury(write, tombstone)

        await self._database.write(work)

    async def give_up(self, tombstone: Tombstone, fence: int) -> Session:
        """Forget a session whose end nobody can prove; return it as it was. Raises LeaseLostError.

        One transaction accepts its end and closes it, so that no server carries out what nobody
        asked for: a delete. Its tombstone must say that nothing was confirmed.
        """

        async def work(write: Transaction) -> Session:
            session = await load_under_lease(write, tombstone.session_id, fence)
            check_move(check_move(session.phase, Phase.ENDING), Phase.ENDED)
            await _bury(write, tombstone)
            return session

        return await self._database.write(work)

    async def tombstone(self, session_or_alias: str) -> Tombstone | None:
        """Return how the session of that id or alias ended, or None."""
        row = await self._database.row(
            "SELECT * FROM tombstones WHERE session_id ="
            " coalesce((SELECT session_id FROM aliases WHERE alias = :name), :name)",
            {"name": session_or_alias},
        )
        return tombstone_of(row) if row else None

    async def purge_tombstones(self, older_than: datetime) -> int:
        """Drop the tombstones of ends before `older_than`, and their aliases; return how many."""
        limit = to_text(older_than)

        async def work(write: Transaction) -> int:
            purged = await write.run("DELETE FROM tombstones WHERE ended_at < ?", [limit])
            await write.run(
                "DELETE FROM aliases WHERE session_id NOT IN (SELECT id FROM sessions)"
                " AND session_id NOT IN (SELECT session_id FROM tombstones)"
            )
            return purged

        return await self._database.write(work)


async def _accept(write: Transaction, session: Session, ending: Ending, now: datetime) -> Session:
    """Write down that the session is to end, and its turn with it if that is at work."""
    await write.run(
        "UPDATE turns SET stop_reason = ?"
        " WHERE session_id = ? AND finished_at IS NULL AND stop_reason IS NULL",
        [StopReason.END, session.id],
    )
    new = replace(session, phase=Phase.ENDING, ending=ending, updated_at=now)
    return await save(write, session, new)


async def _bury(write: Transaction, tombstone: Tombstone) -> None:
    await write.run(
        "INSERT OR REPLACE INTO tombstones (session_id, owner, action, ended_at, answer_json)"
        " VALUES (:session_id, :owner, :action, :ended_at, :answer_json)",
        tombstone_values(tombstone),
    )
    # Its turns and its lease go with it (ON DELETE CASCADE).
    await write.run("DELETE FROM sessions WHERE id = ?", [tombstone.session_id])


def _joined(
    session: Session, action: EndAction | None, default: EndAction, now: datetime
) -> Ending:
    """Return the ending of `session` once an end with `action` has been asked for."""
    pending = session.ending
    if pending is None:
        return Ending(action=action or default, since=now)
    if action is None or action is pending.action:
        return pending
    if action is EndAction.ARCHIVE:
        msg = f"session {session.id} is being deleted: it cannot be archived any more"
        raise EndConflictError(
            msg,
            session_id=session.id,
        )
    return replace(pending, action=action)


async def _ending(write: Transaction, session_id: str, fence: int) -> tuple[Session, Ending]:
    session = await load_under_lease(write, session_id, fence)
    if session.ending is None:
        msg = f"session {session_id} is not ending"
        raise ValueError(msg)
    return session, session.ending

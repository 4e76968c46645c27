"""Tracked sessions and their further names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opencode_mcp.errors import InvalidArgumentError, SessionNotFoundError, StaleSessionError
from opencode_mcp.lifecycle import Phase, check_move
from opencode_mcp.store.changes import insert_session, insert_turn, load, save
from opencode_mcp.store.connection import Part
from opencode_mcp.store.requests import bind_request
from opencode_mcp.store.rows import session_of

if TYPE_CHECKING:
    from opencode_mcp.records import RequestClaim, Session, Turn
    from opencode_mcp.store.connection import Transaction


# One statement, so that page and total fit together. An empty page leaves one row with id NULL.
_PAGE_OF_OWNER = """
    SELECT * FROM (SELECT count(*) AS total FROM sessions WHERE owner = :owner)
    LEFT JOIN (SELECT * FROM sessions WHERE owner = :owner
               ORDER BY updated_at DESC, id LIMIT :limit OFFSET :offset)
    ORDER BY updated_at DESC, id
"""
_PAGE_OF_ALL = """
    SELECT * FROM (SELECT count(*) AS total FROM sessions)
    LEFT JOIN (SELECT * FROM sessions
               ORDER BY updated_at DESC, id LIMIT :limit OFFSET :offset)
    ORDER BY updated_at DESC, id
"""

_NAMED = """
    SELECT session_id FROM aliases WHERE alias = :name
    UNION ALL SELECT id FROM sessions WHERE id = :name
    UNION ALL SELECT session_id FROM tombstones WHERE session_id = :name
"""


class Sessions(Part):
    """Tables `sessions` and `aliases`."""

    async def track(
        self, token: str, session: Session, turn: Turn | None, claim: RequestClaim | None = None
    ) -> None:
        """Turn a start into a session, with its first turn if there is one, bound to `claim`.

        Raises StaleSessionError if the session is tracked already; RequestPendingError if the
        claim is another call's by now. A start that is gone is no reason to lose the session.
        """
        if turn and (turn.session_id, turn.number) != (session.id, 1):
            msg = f"not the first turn of {session.id}: {turn}"
            raise ValueError(msg)
        first = replace(session, turn_count=1 if turn else 0)

        async def work(write: Transaction) -> None:
            await write.run("DELETE FROM starts WHERE token = ?", [token])
            if await load(write, session.id):
                msg = f"session {session.id} is tracked already"
                raise StaleSessionError(msg)
            # One namespace: should somebody have used this very id as an alias, the id wins.
            await write.run("DELETE FROM aliases WHERE alias = ?", [session.id])
            await insert_session(write, first)
            if turn:
                await insert_turn(write, turn)
                await bind_request(write, claim, session.id, turn.number)

        await self._database.write(work)

    async def resolve(self, session_or_alias: str) -> Session | None:
        """Return the session of that id or alias, or None."""
        row = await self._database.row(
            "SELECT * FROM sessions WHERE id ="
            " coalesce((SELECT session_id FROM aliases WHERE alias = :name), :name)",
            {"name": session_or_alias},
        )
        return session_of(row) if row else None

    async def sessions(
        self, owner: str | None, *, offset: int, limit: int
    ) -> tuple[list[Session], int]:
        """Return a page, newest updated first, and the total; `owner` None: everybody's."""
        rows = await self._database.rows(
            _PAGE_OF_ALL if owner is None else _PAGE_OF_OWNER,
            {"owner": owner, "offset": offset, "limit": limit},
        )
        return [session_of(row) for row in rows if row["id"] is not None], rows[0]["total"]

    async def witnesses(self, session: Session, limit: int) -> list[Session]:
        """Return others of the session's instance: those that end last, newest updated first."""
        rows = await self._database.rows(
            "SELECT * FROM sessions WHERE instance_id = ? AND id <> ?"
            " ORDER BY phase = 'ending', updated_at DESC, id LIMIT ?",
            [session.instance_id, session.id, limit],
        )
        return [session_of(row) for row in rows]

    async def move(self, session: Session, phase: Phase) -> Session:
        """Move between ACTIVE and QUARANTINED; `begin_end` and `finish_end` make the other moves.

        Raises StaleSessionError, IllegalMoveError.
        """
        check_move(session.phase, phase)
        if phase in {Phase.ENDING, Phase.ENDED}:
            msg = f"move cannot lead to {phase}: an end is more than a phase"
            raise ValueError(msg)
        new = replace(session, phase=phase, updated_at=self._clock.now())
        return await self._database.write(lambda write: save(write, session, new))

    async def rehome(self, session: Session, instance_id: str) -> Session:
        """Let the session go on in another instance. Raises StaleSessionError."""
        new = replace(session, instance_id=instance_id)
        return await self._database.write(lambda write: save(write, session, new))

    async def aliases(self, session_id: str) -> list[str]:
        """Return the further names of a session, sorted."""
        rows = await self._database.rows(
            "SELECT alias FROM aliases WHERE session_id = ? ORDER BY alias", [session_id]
        )
        return [row["alias"] for row in rows]

    async def add_alias(self, alias: str, session_id: str) -> None:
        """Let `alias` name a tracked session, too. Repeating it is no error.

        Raises SessionNotFoundError; InvalidArgumentError if the alias names something else.
        """

        async def work(write: Transaction) -> None:
            if await load(write, session_id) is None:
                msg = f"no session {session_id} is tracked"
                raise SessionNotFoundError(msg, session_id=session_id)
            taken = await write.row(_NAMED, {"name": alias})
            if (taken and taken["session_id"] != session_id) or alias == session_id:
                msg = f"{alias} already names a session: choose another alias"
                raise InvalidArgumentError(
                    msg,
                    session_id=session_id,
                )
            await write.run(
                "INSERT INTO aliases (alias, session_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
                [alias, session_id],
            )

        await self._database.write(work)

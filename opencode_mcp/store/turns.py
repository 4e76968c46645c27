"""Turns: recorded before their prompt is sent, so that any process can go on observing them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opencode_mcp.errors import StaleSessionError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.store.changes import insert_turn, save
from opencode_mcp.store.connection import Part
from opencode_mcp.store.rows import turn_of

if TYPE_CHECKING:
    import sqlite3

    from opencode_mcp.records import Session, StopReason, Submission, Turn
    from opencode_mcp.store.connection import Transaction

_SELECT = "SELECT * FROM turns WHERE session_id = ? AND number = ?"


class Turns(Part):
    """Table `turns`."""

    async def begin_turn(  # noqa: PLR0913 - the options that a turn may replace, all by keyword
        self,
        session: Session,
        turn: Turn,
        *,
        model: str | None = None,
        agent: str | None = None,
        variant: str | None = None,
        developer_instructions: str | None = None,
    ) -> Session:
        """Record the next turn of `session`; options that are not None replace the stored ones.

        Raises StaleSessionError if the session has changed or is not ACTIVE: of several that
        begin the same number, one succeeds.
        """
        if (turn.session_id, turn.number) != (session.id, session.turn_count + 1):
            msg = f"not the next turn of {session.id}: {turn}"
            raise ValueError(msg)
        if session.phase is not Phase.ACTIVE:
            msg = f"session {session.id} is {session.phase}: no new turn"
            raise StaleSessionError(msg)
        new = replace(
            session,
            updated_at=self._clock.now(),
            turn_count=turn.number,
            model=model if model is not None else session.model,
            agent=agent if agent is not None else session.agent,
            variant=variant if variant is not None else session.variant,
            developer_instructions=(
                developer_instructions
                if developer_instructions is not None
                else session.developer_instructions
            ),
        )

        async def work(write: Transaction) -> Session:
            saved = await save(write, session, new)
            await insert_turn(write, turn)
            return saved

        return await self._database.write(work)

    async def turn(self, session_id: str, number: int) -> Turn | None:
        """Return the turn, or None."""
        return _found(await self._database.row(_SELECT, [session_id, number]))

    async def set_submission(self, turn: Turn, submission: Submission) -> Turn:
        """Record what is known of the prompt; return the turn as it now is.

        Raises StaleSessionError if the session has ended meanwhile.
        """
        return await self._change(
            turn,
            "UPDATE turns SET submission = :value"
            " WHERE session_id = :session_id AND number = :number",
            submission,
        )

    async def set_stop_reason(self, turn: Turn, reason: StopReason) -> Turn:
        """Record why the turn is to stop; the first reason stays. Return the turn as it now is.

        Raises StaleSessionError if the session has ended meanwhile.
        """
        return await self._change(
            turn,
            "UPDATE turns SET stop_reason = :value"
            " WHERE session_id = :session_id AND number = :number AND stop_reason IS NULL",
            reason,
        )

    async def _change(self, turn: Turn, sql: str, value: str) -> Turn:
        async def work(write: Transaction) -> Turn:
            await write.run(
                sql, {"value": value, "session_id": turn.session_id, "number": turn.number}
            )
            found = _found(await write.row(_SELECT, [turn.session_id, turn.number]))
            if found is None:
                msg = f"session {turn.session_id} has no turn {turn.number}"
                raise StaleSessionError(msg)
            return found

        return await self._database.write(work)


def _found(row: sqlite3.Row | None) -> Turn | None:
    return turn_of(row) if row else None

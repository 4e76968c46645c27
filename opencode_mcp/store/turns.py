"""Turns: recorded before their prompt is sent, so that any process can go on observing them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opencode_mcp.errors import StaleSessionError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.store.capacity import check_run_capacity
from opencode_mcp.store.changes import insert_turn, save
from opencode_mcp.store.connection import Part
from opencode_mcp.store.requests import bind_request
from opencode_mcp.store.rows import to_text, turn_of

if TYPE_CHECKING:
    import sqlite3

    from opencode_mcp.records import Capacity, RequestClaim, Session, StopReason, Turn
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
        capacity: Capacity,
        claim: RequestClaim | None = None,
    ) -> Session:
        """Record the next turn of `session`; options that are not None replace the stored ones.

        It is bound to `claim`. Raises RunCapacityError; StaleSessionError if the session has
        changed or is not ACTIVE: of several that begin the same number, one succeeds;
        RequestPendingError if the claim is another call's by now.
        """
        if (turn.session_id, turn.number) != (session.id, session.turn_count + 1):
            msg = f"not the next turn of {session.id}: {turn}"
            raise ValueError(msg)
        if session.phase is not Phase.ACTIVE:
            msg = f"session {session.id} is {session.phase}: no new turn"
            raise StaleSessionError(msg)
        given = _given(
            model=model,
            agent=agent,
            variant=variant,
            developer_instructions=developer_instructions,
        )
        new = replace(session, updated_at=self._clock.now(), turn_count=turn.number, **given)

        async def work(write: Transaction) -> Session:
            await check_run_capacity(write, capacity)
            saved = await save(write, session, new)
            await insert_turn(write, turn)
            await bind_request(write, claim, session.id, turn.number)
            return saved

        return await self._database.write(work)

    async def turn(self, session_id: str, number: int) -> Turn | None:
        """Return the turn, or None."""
        return _found(await self._database.row(_SELECT, [session_id, number]))

    async def turn_by_message(self, session_id: str, message_id: str) -> Turn | None:
        """Return the session's turn whose prompt has this id, or None."""
        return _found(
            await self._database.row(
                "SELECT * FROM turns WHERE session_id = ? AND message_id = ?",
                [session_id, message_id],
            )
        )

    async def later_prompts(self, turn: Turn) -> frozenset[str]:
        """Return the ids of the prompts after this turn's, but for those never taken."""
        rows = await self._database.rows(
            "SELECT message_id FROM turns WHERE session_id = ? AND number > ?"
            " AND submission <> 'refused'",
            [turn.session_id, turn.number],
        )
        return frozenset(row["message_id"] for row in rows)

    async def open_turns(self) -> list[Turn]:
        """Return the turns that nobody has seen to be over, those first that are due first."""
        rows = await self._database.rows(
            "SELECT * FROM turns WHERE finished_at IS NULL ORDER BY deadline_at"
        )
        return [turn_of(row) for row in rows]

    async def refuse_turn(self, turn: Turn) -> Turn:
        """Record that OpenCode provably never took the prompt: no turn ran.

        Raises StaleSessionError if the session has ended meanwhile.
        """
        return await self._change(
            turn,
            "UPDATE turns SET submission = 'refused', finished_at = :value"
            " WHERE session_id = :session_id AND number = :number",
            to_text(self._clock.now()),
        )

    async def finish_turn(self, turn: Turn) -> Turn:
        """Record that the turn was seen to be over; the first time stays. See `refuse_turn`."""
        return await self._change(
            turn,
            "UPDATE turns SET finished_at = :value WHERE session_id = :session_id"
            " AND number = :number AND finished_at IS NULL",
            to_text(self._clock.now()),
        )

    async def hold_turn(self, turn: Turn, holder: str) -> Turn:
        """Record which process observes the turn from here on. See `refuse_turn`."""
        return await self._change(
            turn,
            "UPDATE turns SET holder = :value WHERE session_id = :session_id AND number = :number",
            holder,
        )

    async def set_stop_reason(self, turn: Turn, reason: StopReason) -> Turn:
        """Record why the turn is to stop; the first reason stays. Return the turn as it now is.

        A turn that was seen to be over keeps its own end. Raises StaleSessionError if the session
        has ended meanwhile.
        """
        return await self._change(
            turn,
            "UPDATE turns SET stop_reason = :value"
            " WHERE session_id = :session_id AND number = :number AND stop_reason IS NULL"
            " AND finished_at IS NULL",
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


def _given(**options: str | None) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}

"""Statements that several parts of the store use inside their transactions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opencode_mcp.errors import LeaseLostError, StaleSessionError
from opencode_mcp.store.rows import session_of, session_values, turn_values

if TYPE_CHECKING:
    from opencode_mcp.records import Session, Turn
    from opencode_mcp.store.connection import Transaction


async def load(write: Transaction, session_id: str) -> Session | None:
    """Return the session as it is in this transaction, or None."""
    row = await write.row("SELECT * FROM sessions WHERE id = ?", [session_id])
    return session_of(row) if row else None


async def load_under_lease(write: Transaction, session_id: str, fence: int) -> Session:
    """Return the session; raise LeaseLostError unless the lease with this fence is in force."""
    lease = await write.row(
        "SELECT 1 FROM leases WHERE session_id = ? AND fence = ? AND holder IS NOT NULL",
        [session_id, fence],
    )
    session = await load(write, session_id)
    if lease is None or session is None:
        msg = f"lease {fence} of session {session_id} is not in force any more"
        raise LeaseLostError(msg)
    return session


async def save(write: Transaction, old: Session, new: Session) -> Session:
    """Replace `old` by `new` and return it with its new version.

    Raises StaleSessionError if the row is not `old` any more.
    """
    changed = await write.run(
        "UPDATE sessions SET instance_id = :instance_id, phase = :phase, updated_at = :updated_at,"
        " model = :model, agent = :agent, variant = :variant,"
        " developer_instructions = :developer_instructions, turn_count = :turn_count,"
        " end_action = :end_action, end_since = :end_since, end_attempt = :end_attempt,"
        " end_last_error = :end_last_error, end_delete_sent = :end_delete_sent,"
        " end_next_at = :end_next_at,"
        " version = version + 1"
        " WHERE id = :id AND version = :old_version AND phase = :old_phase",
        {**session_values(new), "old_version": old.version, "old_phase": old.phase},
    )
    if not changed:
        msg = f"session {old.id} has changed since it was read"
        raise StaleSessionError(msg)
    return replace(new, version=old.version + 1)


async def insert_session(write: Transaction, session: Session) -> None:
    """Insert a session."""
    await write.run(
        "INSERT INTO sessions (id, owner, instance_id, directory, phase, version, created_at,"
        " updated_at, title, model, agent, variant, base_instructions, developer_instructions,"
        " sandbox, approval_policy,"
        " turn_count, end_action, end_since, end_attempt, end_last_error, end_delete_sent,"
        " end_next_at)"
        " VALUES (:id, :owner, :instance_id, :directory, :phase, :version, :created_at,"
        " :updated_at, :title, :model, :agent, :variant, :base_instructions,"
        " :developer_instructions, :sandbox, :approval_policy, :turn_count, :end_action,"
        " :end_since, :end_attempt, :end_last_error, :end_delete_sent, :end_next_at)",
        session_values(session),
    )


async def insert_turn(write: Transaction, turn: Turn) -> None:
    """Insert a turn; its session must be there."""
    await write.run(
        "INSERT INTO turns (session_id, number, message_id, boundary, submission, created_at,"
        " deadline_at, stop_reason, holder, finished_at, output_schema)"
        " VALUES (:session_id, :number, :message_id, :boundary, :submission, :created_at,"
        " :deadline_at, :stop_reason, :holder, :finished_at, :output_schema)",
        turn_values(turn),
    )

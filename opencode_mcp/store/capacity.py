"""The operator's ceilings, checked inside the transaction that uses them up.

So they are exact: two processes that start something at the same time cannot both take the last
place. A start under way counts like the session and the turn that it is about to become.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.counting import counted
from opencode_mcp.errors import RunCapacityError, SessionCapacityError

if TYPE_CHECKING:
    from opencode_mcp.records import Capacity
    from opencode_mcp.store.connection import Transaction

_SESSIONS = (
    "SELECT (SELECT count(*) FROM sessions WHERE owner = :owner)"
    " + (SELECT count(*) FROM starts WHERE owner = :owner) AS total"
)
_RUNNING = (
    "SELECT (SELECT count(*) FROM turns WHERE finished_at IS NULL)"
    " + (SELECT count(*) FROM starts) AS total"
)


async def check_session_capacity(write: Transaction, owner: str, capacity: Capacity) -> None:
    """Raise SessionCapacityError if `owner` has as many sessions as it may have."""
    row = await write.row(_SESSIONS, {"owner": owner})
    if row and row["total"] >= capacity.sessions:
        msg = (
            f"you have {counted(row['total'], 'tracked session')}, and this server allows"
            f" {capacity.sessions}: end some with opencode-end (opencode-status lists them)"
        )
        raise SessionCapacityError(msg)


async def check_run_capacity(write: Transaction, capacity: Capacity) -> None:
    """Raise RunCapacityError if as many turns run as may run, whoever began them."""
    if not capacity.running:
        return
    row = await write.row(_RUNNING, {})
    if row and row["total"] >= capacity.running:
        msg = (
            f"running: {counted(row['total'], 'turn')}, the most that this server allows"
            f" ({capacity.running}); wait until one is over (opencode-status), or stop one with"
            " opencode-cancel; nothing was sent"
        )
        raise RunCapacityError(msg)

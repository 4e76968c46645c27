"""Request-ids: which turn a call began, so that the same call, sent again, joins it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.errors import RequestPendingError
from opencode_mcp.records import Submission
from opencode_mcp.store.connection import Part
from opencode_mcp.store.rows import claim_of, claim_values, to_text

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime

    from opencode_mcp.records import RequestClaim
    from opencode_mcp.store.connection import Transaction

_SELECT = "SELECT * FROM requests WHERE owner = :owner AND request_id = :request_id"
_CLAIM = (
    "INSERT OR REPLACE INTO requests (owner, request_id, digest, call, newest_call, holder,"
    " created_at, expires_at, session_id, turn) VALUES (:owner, :request_id, :digest, :call,"
    " :newest_call, :holder, :created_at, :expires_at, :session_id, :turn)"
)
# Not bound, or to a turn of which OpenCode provably never took the prompt: nothing was sent.
_RELEASE = """
    DELETE FROM requests WHERE owner = :owner AND request_id = :request_id AND call = :call
    AND (session_id IS NULL OR EXISTS (
        SELECT 1 FROM turns WHERE turns.session_id = requests.session_id
        AND turns.number = requests.turn AND turns.submission = :refused))
"""


class Requests(Part):
    """Table `requests`."""

    async def claim_request(
        self, wanted: RequestClaim, over: RequestClaim | None = None
    ) -> RequestClaim:
        """Claim a request-id for a call, or join who claimed it before; return the row as it is.

        It is free if nobody has it, if it has expired, if its prompt was refused, or if it is
        still just `over`, a claim without a turn whose process is known to be dead. A call with
        the same digest that finds it taken is its newest from here on.
        """
        values = claim_values(wanted)

        async def work(write: Transaction) -> RequestClaim:
            row = await write.row(_SELECT, values)
            if row is None or await _is_free(write, row, wanted.created_at, over):
                await write.run(_CLAIM, values)
            elif row["digest"] == wanted.digest:
                await write.run(
                    "UPDATE requests SET newest_call = :newest_call"
                    " WHERE owner = :owner AND request_id = :request_id",
                    values,
                )
            now = await write.row(_SELECT, values)
            assert now is not None  # noqa: S101 - it was there, or was inserted just now
            return claim_of(now)

        return await self._database.write(work)

    async def request(self, owner: str, request_id: str) -> RequestClaim | None:
        """Return what the request-id stands for, also after it has expired; None: nothing."""
        row = await self._database.row(_SELECT, {"owner": owner, "request_id": request_id})
        return claim_of(row) if row else None

    async def request_after_writes(self, owner: str, request_id: str) -> RequestClaim | None:
        """Return the same as `request`, once all that this process began to write is written.

        A cancelled caller does not stop its write, which may come after a mere read.
        """
        values = {"owner": owner, "request_id": request_id}

        async def work(write: Transaction) -> RequestClaim | None:
            row = await write.row(_SELECT, values)
            return claim_of(row) if row else None

        return await self._database.write(work)

    async def release_request(self, claim: RequestClaim) -> bool:
        """Forget a claim for which nothing was sent, if it is this call's; whether that was so."""
        values = {**claim_values(claim), "refused": Submission.REFUSED}

        async def work(write: Transaction) -> bool:
            return bool(await write.run(_RELEASE, values))

        return await self._database.write(work)

    async def purge_requests(self, now: datetime) -> int:
        """Drop the request-ids that have expired by `now`; return how many."""

        async def work(write: Transaction) -> int:
            return await write.run("DELETE FROM requests WHERE expires_at <= ?", [to_text(now)])

        return await self._database.write(work)


async def bind_request(
    write: Transaction, claim: RequestClaim | None, session_id: str, number: int
) -> None:
    """Note which turn the call began, in the transaction that records the turn.

    Raises RequestPendingError, so that nothing is sent, if the claim is not this call's any more.
    """
    if claim is None:
        return
    bound = await write.run(
        "UPDATE requests SET session_id = :session_id, turn = :turn WHERE owner = :owner"
        " AND request_id = :request_id AND call = :call AND session_id IS NULL",
        {**claim_values(claim), "session_id": session_id, "turn": number},
    )
    if not bound:
        msg = (
            f"another call took request-id {claim.request_id[:100]} over: this one sent nothing;"
            " send the same call again to get the answer"
        )
        raise RequestPendingError(msg)


async def _is_free(
    write: Transaction, row: sqlite3.Row, now: datetime, over: RequestClaim | None
) -> bool:
    if row["expires_at"] <= to_text(now):
        return True
    if over is not None and row["session_id"] is None and row["call"] == over.call:
        return True
    if row["session_id"] is None:
        return False
    refused = await write.row(
        "SELECT 1 FROM turns WHERE session_id = ? AND number = ? AND submission = ?",
        [row["session_id"], row["turn"], Submission.REFUSED],
    )
    return refused is not None

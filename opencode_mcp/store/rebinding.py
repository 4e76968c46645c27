"""Moving all sessions of one OpenCode to another, on an operator's word (contract §1).

One transaction: either all of them are moved or none. Whoever writes to one of them at that moment
finds its version changed, reads it again, and acts on the new instance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from opencode_mcp.errors import StaleSessionError, StoreError
from opencode_mcp.records import InstanceKind
from opencode_mcp.store.connection import Part
from opencode_mcp.store.rows import instance_of

if TYPE_CHECKING:
    from opencode_mcp.records import Instance
    from opencode_mcp.store.connection import Transaction

#: who acts on sessions of an instance: processes with a running turn, and those at work on an end
_HOLDERS = """
    SELECT session_id, holder FROM turns JOIN sessions ON sessions.id = session_id
    WHERE instance_id = :id AND finished_at IS NULL AND holder IS NOT NULL
    UNION SELECT session_id, holder FROM leases JOIN sessions ON sessions.id = session_id
    WHERE instance_id = :id AND holder IS NOT NULL
    ORDER BY session_id, holder
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where sessions go: exactly one is given.

    `url`: the normalised address of an attached OpenCode. `data_id`: whichever managed OpenCode
    carries this data on.
    """

    url: str | None = None
    data_id: str | None = None


@dataclass(frozen=True, slots=True)
class Rebound:
    """What was moved."""

    instance_id: str
    sessions: int
    #: sessions that were being created when their process died
    starts: int


class Rebinding(Part):
    """What spans the tables `instances`, `sessions` and `starts`."""

    async def instances(self) -> list[tuple[Instance, int]]:
        """Return each instance that has tracked sessions, and how many; the most first."""
        rows = await self._database.rows(
            "SELECT instances.*, count(*) AS total FROM instances"
            " JOIN sessions ON instance_id = instances.id"
            " GROUP BY instances.id ORDER BY total DESC, instances.id"
        )
        return [(instance_of(row), row["total"]) for row in rows]

    async def find_instance(self, reference: str) -> Instance | None:
        """Return the instance of this id or normalised URL, or None."""
        row = await self._database.row(
            "SELECT * FROM instances WHERE id = :name OR url = :name", {"name": reference}
        )
        return instance_of(row) if row else None

    async def sessions_of(self, instance_id: str, limit: int) -> list[str]:
        """Return the ids of an instance's sessions, the newest updated first."""
        rows = await self._database.rows(
            "SELECT id FROM sessions WHERE instance_id = ? ORDER BY updated_at DESC, id LIMIT ?",
            [instance_id, limit],
        )
        return [row["id"] for row in rows]

    async def holders(self, instance_id: str) -> list[tuple[str, str]]:
        """Return the sessions that a process acts on, each with that process's name."""
        rows = await self._database.rows(_HOLDERS, {"id": instance_id})
        return [(row["session_id"], row["holder"]) for row in rows]

    async def rebind(self, old_id: str, place: Place, dead: frozenset[str]) -> Rebound:
        """Move all that is recorded for instance `old_id` to `place`.

        Pending ends are tried again at once, and what a delete of before was answered counts no
        more: it proves nothing in another OpenCode. Raises StaleSessionError if a process that is
        not in `dead` acts on one of the sessions.
        """

        async def work(write: Transaction) -> Rebound:
            await _refuse_if_held(write, old_id, dead)
            new_id = await _instance_at(write, place)
            moved = await write.run(
                "UPDATE sessions SET instance_id = ?, end_delete_sent = 0, end_next_at = NULL,"
                " version = version + 1 WHERE instance_id = ?",
                [new_id, old_id],
            )
            starts = await write.run(
                "UPDATE starts SET instance_id = ? WHERE instance_id = ?", [new_id, old_id]
            )
            return Rebound(new_id, moved, starts)

        return await self._database.write(work)


async def _refuse_if_held(write: Transaction, old_id: str, dead: frozenset[str]) -> None:
    for row in await write.rows(_HOLDERS, {"id": old_id}):
        if row["holder"] not in dead:
            msg = f"a server began to work on session {row['session_id']} at this moment"
            raise StaleSessionError(msg)


async def _instance_at(write: Transaction, place: Place) -> str:
    """Return the id of the instance at `place`, made if there is none.

    For managed data it is one that is over: the next OpenCode on that data carries it on.
    """
    kind = InstanceKind.MANAGED if place.url is None else InstanceKind.ATTACH
    values = {"id": uuid4().hex, "kind": kind, "url": place.url, "data_id": place.data_id}
    select = (
        "SELECT id FROM instances WHERE url = :url"
        " OR (:url IS NULL AND kind = 'managed' AND dead AND data_id = :data_id) LIMIT 1"
    )
    row = await write.row(select, values)
    if row is None:
        await write.run(
            "INSERT INTO instances (id, kind, url, data_id, dead)"
            " VALUES (:id, :kind, :url, :data_id, :url IS NULL)",
            values,
        )
        row = await write.row(select, values)
    if row is None:
        msg = f"the instance {values['id']} was inserted and is not there"
        raise StoreError(msg)
    return str(row["id"])

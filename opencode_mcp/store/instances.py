"""The OpenCodes we know, and the sessions about to be started in them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from opencode_mcp.errors import StoreError
from opencode_mcp.records import Instance, InstanceKind
from opencode_mcp.store.capacity import check_run_capacity, check_session_capacity
from opencode_mcp.store.connection import Part
from opencode_mcp.store.rows import instance_of, start_of, start_values, to_text

if TYPE_CHECKING:
    from datetime import datetime

    from opencode_mcp.records import Capacity, StartIntent
    from opencode_mcp.store.connection import Transaction


class Instances(Part):
    """Table `instances`."""

    async def put_instance(self, instance: Instance) -> None:
        """Insert or update. What is recorded as dead stays dead."""
        values = {
            "id": instance.id,
            "kind": instance.kind,
            "url": instance.url,
            "settings_key": instance.settings_key,
            "data_id": instance.data_id,
            "dead": instance.dead,
        }

        async def work(write: Transaction) -> None:
            await write.run(
                "INSERT INTO instances (id, kind, url, settings_key, data_id, dead)"
                " VALUES (:id, :kind, :url, :settings_key, :data_id, :dead)"
                " ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, url = excluded.url,"
                " settings_key = excluded.settings_key, data_id = excluded.data_id,"
                " dead = max(dead, excluded.dead)",
                values,
            )

        await self._database.write(work)

    async def instance(self, instance_id: str) -> Instance | None:
        """Return the instance, or None."""
        row = await self._database.row("SELECT * FROM instances WHERE id = ?", [instance_id])
        return instance_of(row) if row else None

    async def attach_instance(self, url: str) -> Instance:
        """Return the instance at `url` (normalised by the caller); made at the first call."""
        select = "SELECT * FROM instances WHERE url = ?"
        row = await self._database.row(select, [url])
        if row:
            return instance_of(row)

        async def work(write: Transaction) -> Instance:
            await write.run(
                "INSERT INTO instances (id, kind, url) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [uuid4().hex, InstanceKind.ATTACH, url],
            )
            row = await write.row(select, [url])
            if row is None:
                msg = f"the instance at {url} was inserted and is not there"
                raise StoreError(msg)
            return instance_of(row)

        return await self._database.write(work)


class Starts(Part):
    """Table `starts`. `Sessions.track` turns one into a session."""

    async def record_start(self, start: StartIntent, capacity: Capacity) -> None:
        """Write down that a session is about to be created: it counts from here on.

        Raises SessionCapacityError, RunCapacityError.
        """
        values = start_values(start)

        async def work(write: Transaction) -> None:
            await check_session_capacity(write, start.owner, capacity)
            await check_run_capacity(write, capacity)
            await write.run(
                "INSERT INTO starts (token, owner, instance_id, directory, created_at)"
                " VALUES (:token, :owner, :instance_id, :directory, :created_at)",
                values,
            )

        await self._database.write(work)

    async def has_starts(self, before: datetime) -> bool:
        """Whether there are starts of before that nobody settled yet."""
        sql = "SELECT 1 FROM starts WHERE created_at < ? LIMIT 1"
        return await self._database.row(sql, [to_text(before)]) is not None

    async def instances_of_starts(self) -> list[Instance]:
        """Return the instances, not known to be dead, in which a start was left."""
        rows = await self._database.rows(
            "SELECT * FROM instances WHERE NOT dead AND id IN (SELECT instance_id FROM starts)"
        )
        return [instance_of(row) for row in rows]

    async def open_starts(self, instance: Instance, before: datetime) -> list[StartIntent]:
        """Return the starts of before that nobody settled yet and this instance can tell of.

        Those in itself, and in dead ones whose data it carries on. The oldest first.
        """
        rows = await self._database.rows(
            "SELECT starts.* FROM starts JOIN instances ON instances.id = starts.instance_id"
            " WHERE starts.created_at < :before"
            " AND (instances.id = :id OR (instances.dead AND instances.data_id = :data_id))"
            " ORDER BY starts.created_at, starts.token",
            {"before": to_text(before), "id": instance.id, "data_id": instance.data_id},
        )
        return [start_of(row) for row in rows]

    async def drop_start(self, token: str) -> None:
        """Cross out a start that came to nothing; no matter if it is gone already."""

        async def work(write: Transaction) -> None:
            await write.run("DELETE FROM starts WHERE token = ?", [token])

        await self._database.write(work)

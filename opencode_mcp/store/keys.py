"""Keys that all processes of ours on this database share."""

from __future__ import annotations

import secrets

from opencode_mcp.errors import StoreError
from opencode_mcp.store.connection import Part, Transaction

#: what an AES-256 key is derived from
_KEY_BYTES = 32
#: no key: a row that is written to see whether that works
_PROBE = "probe"


class Keys(Part):
    """Table `keys`."""

    async def check_writable(self) -> None:
        """Write a row, really. Raises StoreUnusableError: a full disk, a file that is gone."""

        async def work(write: Transaction) -> None:
            await write.run(
                "INSERT INTO keys (name, value) VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                [_PROBE, secrets.token_bytes(_KEY_BYTES)],
            )

        await self._database.write(work)

    async def shared_key(self, name: str) -> bytes:
        """Return the key of this name, 32 random bytes; made once, by whoever asks first."""
        select = "SELECT value FROM keys WHERE name = ?"
        row = await self._database.row(select, [name])
        if row:
            return bytes(row["value"])

        async def work(write: Transaction) -> bytes:
            await write.run(
                "INSERT INTO keys (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
                [name, secrets.token_bytes(_KEY_BYTES)],
            )
            row = await write.row(select, [name])
            if row is None:
                msg = f"the key {name} was inserted and is not there"
                raise StoreError(msg)
            return bytes(row["value"])

        return await self._database.write(work)

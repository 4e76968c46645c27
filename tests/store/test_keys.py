"""Keys that all processes share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from opencode_mcp.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_key_is_made_once_for_all_processes_and_restarts(path: Path) -> None:
    async with Store.open(path) as one, Store.open(path) as other:
        found = await asyncio.gather(*(s.shared_key("state") for s in (one, other, one, other)))
        assert len(found[0]) == 32
        assert await one.shared_key("another") != found[0]
    async with Store.open(path) as later:
        assert {*found, await later.shared_key("state")} == {found[0]}

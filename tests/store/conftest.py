"""A store on a file of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.clock import Clock
from opencode_mcp.store.connection import Database, open_database
from opencode_mcp.store.store import Store
from tests.store.make import LIMIT_S, SteppingClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Tell where the database is to be; nothing is there yet."""
    return tmp_path / "state" / "opencode-mcp.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    """Open a store."""
    async with Store.open(path, clock=SteppingClock()) as opened:
        yield opened


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    """Open what a store stands on, for at most LIMIT_S."""
    async with asyncio.timeout(LIMIT_S), open_database(path, Clock()) as opened:
        yield opened

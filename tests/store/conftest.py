"""A store on a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opencode_mcp.store.store import Store
from tests.store.make import SteppingClock

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

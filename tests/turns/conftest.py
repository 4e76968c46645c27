"""Fixtures: a twin, and our server attached to it, in the loop of each test.

Whatever a test does, nothing of it may be left: when all is closed, the loop has no other task.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.support.bridges import Bridges
from tests.twin import Twin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.bridge import Bridge


@pytest_asyncio.fixture
async def nothing_left() -> AsyncIterator[None]:
    """Fail where a task outlives the twin and the servers of its test."""
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, f"still running: {left}"


@pytest_asyncio.fixture
async def twin(nothing_left: None, tmp_path: Path) -> AsyncIterator[Twin]:
    """Give a twin that runs in the test's folder."""
    del nothing_left
    async with Twin(tmp_path, model_speed=20) as running:
        yield running


@pytest_asyncio.fixture
async def bridges(tmp_path: Path, twin: Twin) -> AsyncIterator[Bridges]:
    """Give a way to open our server on the twin, as often as a test likes."""
    async with AsyncExitStack() as stack:
        yield Bridges(stack, tmp_path, twin, tmp_path)


@pytest_asyncio.fixture
async def bridge(bridges: Bridges) -> Bridge:
    """Give our server, with limits so short that a test can see them run out."""
    return await bridges.attached(REQUEST_TIMEOUT_SECONDS="2", CLEANUP_TIMEOUT_SECONDS="4")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a folder to work in."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder.resolve()

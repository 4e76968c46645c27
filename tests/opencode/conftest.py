"""Fixtures: the difficult peer and our side of it, and a world for managed instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.opencode.events import EventHub
from tests.opencode.fake_server import FakeServer, QuickClock
from tests.opencode.http_support import http_client
from tests.opencode.hub_support import client_of
from tests.opencode.managed_support import World, make_home

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from opencode_mcp.opencode.http import Http


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as running:
        yield running


@pytest.fixture
def clock() -> QuickClock:
    return QuickClock()


@pytest.fixture
async def http(server: FakeServer, clock: QuickClock) -> AsyncIterator[Http]:
    async with http_client(server.url, clock) as opened:
        yield opened


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[OpencodeClient]:
    async with OpencodeClient(
        server.url, username="opencode", password="pw", request_timeout_s=5, clock=QuickClock()
    ) as opened:
        yield opened


@pytest.fixture
async def hub(server: FakeServer) -> AsyncIterator[EventHub]:
    async with client_of(server) as client, EventHub(client, clock=QuickClock()) as opened:
        yield opened


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all managed instances: OpenCode's first start in a home takes seconds longer."""
    return make_home(tmp_path_factory.mktemp("home"))


@pytest.fixture
async def world(tmp_path: Path, home: Path) -> AsyncIterator[World]:
    world = World(tmp_path / "db.instances", home)
    try:
        yield world
    finally:
        await world.close()

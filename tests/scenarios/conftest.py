"""The peer of a scenario: each one is played with the twin and with the real OpenCode."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.real.support.opencode_server import USERNAME
from tests.real.support.sandbox import write_project
from tests.scenarios.peer import Peer, Place
from tests.twin import Twin
from tests.worker import ASK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from opencode_mcp.cli.scripted_model import ScriptedModel
    from tests.real.support.opencode_server import OpencodeServer

#: one test's limit, for a machine ten times slower than a free one
_LIMIT_S = 300
_HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "rows(*names): further rows of the facts that a test plays")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the scenarios in the loop of the worker's OpenCode."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.timeout(_LIMIT_S, method="signal"), append=False)
            if pytest_asyncio.is_async_test(item):
                item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(loop_scope="session")
async def twin(tmp_path: Path) -> AsyncIterator[Twin]:
    """Give a twin of the test's own."""
    async with Twin(write_project(tmp_path / "workdir")) as running:
        yield running


@pytest.fixture
def twin_place(twin: Twin, tmp_path: Path) -> Place:
    folders = (write_project(tmp_path / "project"), write_project(tmp_path / "asking", ASK))
    return Place(twin.url, twin.username, twin.password, twin.model, *folders)


@pytest.fixture
def real_place(opencode: OpencodeServer, model: ScriptedModel, grounds: Path) -> Place:
    """Give the worker's OpenCode, which costs nothing more."""
    folders = (grounds / "project", grounds / "asking")
    return Place(opencode.url, USERNAME, opencode.password, model, *folders)


@pytest.fixture(params=["twin", "real"])
def place(request: pytest.FixtureRequest) -> Place:
    """Give the OpenCode that plays the scenario."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


@pytest_asyncio.fixture(loop_scope="session")
async def peer(place: Place) -> AsyncIterator[Peer]:
    """Give the other side of the scenario."""
    async with Peer(place) as client:
        yield client

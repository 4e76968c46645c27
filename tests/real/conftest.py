"""Fixtures of the real suite: our server as a subprocess, and witnesses of what it does.

Its OpenCode and model are those of the xdist worker: tests/worker.py. Each test
has its own database; tests that need a managed OpenCode get a home of their own for it. Whatever a
test starts is killed after it, even when it failed.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.real.support.bridges import ManagedWitnesses, RealBridges
from tests.real.support.faulty_proxy import FaultyProxy
from tests.real.support.processes import Marker, kill_home
from tests.real.support.sandbox import Sandbox, write_project
from tests.real.support.witness import Witness

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from opencode_mcp.cli.scripted_model import ScriptedModel
    from tests.real.support.opencode_server import OpencodeServer
    from tests.support.bridge import Bridge

#: one test's limit, for a machine ten times slower than a free one
_LIMIT_S = 300
_HERE = Path(__file__).parent
_KEPT = frozenset({"README.md", "opencode.json"})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the suite's tests in the loop that their session-wide fixtures live in."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.timeout(_LIMIT_S, method="signal"), append=False)
            if pytest_asyncio.is_async_test(item):
                item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(loop_scope="session")
async def witness(model: ScriptedModel, opencode: OpencodeServer) -> AsyncIterator[Witness]:
    """Give a second client of the worker's OpenCode."""
    async with Witness(opencode.url, opencode.password, model) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def quiet(tmp_path: Path, witness: Witness) -> AsyncIterator[None]:
    """Stop what a test left running in its folders, so that it does not slow the next one."""
    yield
    for readme in tmp_path.glob("*/README.md"):
        await witness.silence(readme.parent.resolve())


@pytest_asyncio.fixture(loop_scope="session")
async def bridges(
    tmp_path: Path, opencode: OpencodeServer, grounds: Path
) -> AsyncIterator[RealBridges]:
    """Give a way to start our server on a database of the test's own, as often as it likes."""
    async with AsyncExitStack() as stack:
        yield RealBridges(stack, tmp_path, opencode, grounds)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bridge(
    opencode: OpencodeServer, grounds: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Bridge]:
    """Give the worker's server, for tests of single sessions. It tracks those of others too."""
    async with AsyncExitStack() as stack:
        bridges = RealBridges(stack, tmp_path_factory.mktemp("bridge"), opencode, grounds)
        yield await bridges.attached(ALLOWED_ROOTS=str(tmp_path_factory.getbasetemp()))


@pytest_asyncio.fixture(loop_scope="session")
async def proxy(opencode: OpencodeServer) -> AsyncIterator[FaultyProxy]:
    """Give a proxy before the worker's OpenCode that fails when told to."""
    async with FaultyProxy(opencode.url) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def proxied(bridges: RealBridges, proxy: FaultyProxy) -> Bridge:
    """Give one of our servers that reaches OpenCode through the proxy, with short limits."""
    return await bridges.attached(
        SERVER_URL=proxy.url, REQUEST_TIMEOUT_SECONDS="4", CLEANUP_TIMEOUT_SECONDS="8"
    )


@pytest_asyncio.fixture(loop_scope="session")
async def project(grounds: Path, witness: Witness) -> AsyncIterator[Path]:
    """Give a project folder without settings: everything is allowed in it. It has no sessions."""
    yield grounds / "project"
    await _clear(grounds / "project", witness)


@pytest_asyncio.fixture(loop_scope="session")
async def asking(grounds: Path, witness: Witness) -> AsyncIterator[Path]:
    """Give a project folder in which bash and edits need leave. It has no sessions."""
    yield grounds / "asking"
    await _clear(grounds / "asking", witness)


async def _clear(folder: Path, witness: Witness) -> None:
    await witness.clear(folder)
    for path in folder.iterdir():
        if path.name not in _KEPT:
            path.unlink()


@pytest.fixture
def untouched(tmp_path: Path) -> Path:
    """Give a project of the test's own, in which nothing ran before."""
    return write_project(tmp_path / "untouched")


@pytest.fixture
def marker() -> Iterator[Marker]:
    """Give a shell command that can be found in the process table."""
    made = Marker()
    yield made
    made.kill()


@pytest.fixture
def sandbox(tmp_path: Path, model: ScriptedModel) -> Iterator[Sandbox]:
    """Give a home for managed OpenCodes; all that runs in it is killed after the test."""
    made = Sandbox(tmp_path / "home", model.url)
    yield made
    kill_home(made.home)


@pytest_asyncio.fixture(loop_scope="session")
async def managed_witness(model: ScriptedModel) -> AsyncIterator[ManagedWitnesses]:
    """Give a way to read a managed OpenCode."""
    async with AsyncExitStack() as stack:
        yield ManagedWitnesses(stack, model)

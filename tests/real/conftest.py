"""Fixtures of the real suite: a real OpenCode, a scripted model, our server as a subprocess.

Each xdist worker has one model and one OpenCode to attach to. Each test has its own project folder
and its own database; tests that need a managed OpenCode get a home of their own for it. Whatever
a test starts is killed after it, even when it failed.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from opencode_mcp.cli.scripted_model import ScriptedModel
from tests.real.support.bridges import Bridges, ManagedWitnesses
from tests.real.support.faulty_proxy import FaultyProxy
from tests.real.support.opencode_server import OpencodeServer
from tests.real.support.processes import Marker, kill_home
from tests.real.support.sandbox import Sandbox, write_project
from tests.real.support.witness import Witness

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.real.support.bridge import Bridge

#: one test's limit, for a machine ten times slower than a free one
_LIMIT_S = 300
_HERE = Path(__file__).parent
_ASK = {"permission": {"bash": "ask", "edit": "ask"}}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the suite's tests in the loop that their session-wide fixtures live in."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.timeout(_LIMIT_S, method="signal"), append=False)
            if pytest_asyncio.is_async_test(item):
                item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def model() -> AsyncIterator[ScriptedModel]:
    """Give the worker's scripted model."""
    async with ScriptedModel() as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def opencode(
    model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[OpencodeServer]:
    """Give the worker's OpenCode, to attach to."""
    base = tmp_path_factory.mktemp("opencode")
    workdir = write_project(base / "workdir")
    async with OpencodeServer(Sandbox(base / "home", model.url), workdir) as running:
        async with Witness(running.url, running.password, model) as client:
            # The first turn of a server takes seconds (facts 2.2): no test should pay for that.
            session_id = await client.create(workdir)
            await client.prompt(session_id, {"type": "text", "text": "SAY:warm"})
            await client.answered(session_id)
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def witness(model: ScriptedModel, opencode: OpencodeServer) -> AsyncIterator[Witness]:
    """Give a second client of the worker's OpenCode."""
    async with Witness(opencode.url, opencode.password, model) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def bridges(
    tmp_path: Path, opencode: OpencodeServer, witness: Witness
) -> AsyncIterator[Bridges]:
    """Give a way to start our server, as often as a test likes."""
    async with AsyncExitStack() as stack:
        yield Bridges(stack, tmp_path, opencode)
    for readme in tmp_path.glob("*/README.md"):
        await witness.silence(readme.parent.resolve())


@pytest_asyncio.fixture(loop_scope="session")
async def bridge(bridges: Bridges) -> Bridge:
    """Give one of our servers, attached to the worker's OpenCode."""
    return await bridges.attached()


@pytest_asyncio.fixture(loop_scope="session")
async def proxy(opencode: OpencodeServer) -> AsyncIterator[FaultyProxy]:
    """Give a proxy before the worker's OpenCode that fails when told to."""
    async with FaultyProxy(opencode.url) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def proxied(bridges: Bridges, proxy: FaultyProxy) -> Bridge:
    """Give one of our servers that reaches OpenCode through the proxy, with short limits."""
    return await bridges.attached(
        SERVER_URL=proxy.url, REQUEST_TIMEOUT_SECONDS="4", CLEANUP_TIMEOUT_SECONDS="8"
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a project folder without settings: everything is allowed in it."""
    return write_project(tmp_path / "project")


@pytest.fixture
def asking(tmp_path: Path) -> Path:
    """Give a project folder in which bash and edits need leave."""
    return write_project(tmp_path / "asking", _ASK)


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

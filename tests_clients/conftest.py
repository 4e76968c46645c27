"""Fixtures of the clients' tests. Run by `scripts/test_clients.sh`, in namespaces of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from opencode_mcp.cli.scripted_model import opencode_config
from tests.real.support.sandbox import write_project
from tests.real.support.witness import Witness
from tests.support.bridges import bare_env
from tests.support.http_bridge import run_http
from tests_clients.support.home import ClientHome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import ScriptedModel
    from tests.real.support.opencode_server import OpencodeServer
    from tests.support.http_bridge import HttpProcess

# nothing of the developer's shell leaks in; the scripted model, and a real OpenCode
pytest_plugins = ["tests.conftest"]

#: two runs of a client, and what surrounds them
_LIMIT_S = 600
#: the recipes name this port, and no other
_PORT = 8000
TOKEN = "a-token-of-the-tests"
#: a project's own files; all others are a test's
_KEPT = frozenset({"README.md", "opencode.json"})


def pytest_itemcollected(item: pytest.Item) -> None:
    """Run a test in the loop of its session-wide fixtures."""
    item.add_marker(pytest.mark.timeout(_LIMIT_S), append=False)
    if pytest_asyncio.is_async_test(item):
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(loop_scope="session")
async def witness(model: ScriptedModel, opencode: OpencodeServer) -> AsyncIterator[Witness]:
    """A second client of the OpenCode of the tests."""
    async with Witness(opencode.url, opencode.password, model) as client:
        yield client


@pytest.fixture
def project(grounds: Path) -> Path:
    """A project in which everything is allowed."""
    return grounds / "project"


@pytest.fixture
def asking(grounds: Path) -> Path:
    """A project in which bash and edits need leave."""
    return grounds / "asking"


@pytest_asyncio.fixture(loop_scope="session")
async def home(
    tmp_path: Path, project: Path, opencode: OpencodeServer, witness: Witness
) -> AsyncIterator[ClientHome]:
    """A client's home; our server, started in it, is attached to the OpenCode of the tests."""
    made = ClientHome(tmp_path / "home", project)
    made.attach(opencode)
    made.set("allowed_roots", str(project.parent))
    made.set("default_cwd", str(project))
    yield made
    await made.left_alone()
    for folder in project.parent.iterdir():
        await witness.clear(folder)
        for file in folder.iterdir():
            if file.name not in _KEPT:
                file.unlink()


@pytest_asyncio.fixture(loop_scope="session")
async def bare_home(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[ClientHome]:
    """A client's home without settings of ours: our server starts an OpenCode."""
    made = ClientHome(tmp_path / "home", write_project(tmp_path / "project"))
    made.write(".config/opencode/opencode.json", json.dumps(opencode_config(model.url)))
    yield made
    await made.left_alone()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def served(
    opencode: OpencodeServer, grounds: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[HttpProcess]:
    """Our server as a team has it: over HTTP, with a token; with every tool that it can have."""
    folder = tmp_path_factory.mktemp("served")
    env = _team_env(opencode, grounds, folder, CODEX_TOOLS="true")
    async with run_http(env, folder, name="served") as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def team(
    opencode: OpencodeServer, grounds: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[HttpProcess]:
    """Another, where the recipes look for it. Only one file of tests may use it: one worker."""
    folder = tmp_path_factory.mktemp("team")
    env = _team_env(opencode, grounds, folder, PORT=str(_PORT))
    async with run_http(env, folder, name="team") as running:
        yield running


def _team_env(opencode: OpencodeServer, grounds: Path, folder: Path, **more: str) -> dict[str, str]:
    settings = {
        "AUTH_TOKENS": f"alice:{TOKEN}",
        "SERVER_URL": opencode.url,
        "SERVER_PASSWORD": opencode.password,
        "ALLOWED_ROOTS": str(grounds),
        "DEFAULT_CWD": str(grounds / "project"),
        "CLEANUP_TIMEOUT_SECONDS": "60",
    } | more
    return bare_env(folder) | {f"OPENCODE_MCP_{name}": value for name, value in settings.items()}

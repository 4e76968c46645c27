"""What an xdist worker has once: a real OpenCode, its scripted model, two project folders.

The real suite and the scenarios share them: an OpenCode needs seconds and hundreds of MB to start,
and seconds for each new folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from opencode_mcp.cli.scripted_model import ScriptedModel
from tests.real.support.opencode_server import OpencodeServer
from tests.real.support.sandbox import Sandbox, write_project
from tests.real.support.witness import Witness

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ASK = {"permission": {"bash": "ask", "edit": "ask"}}


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


@pytest.fixture(scope="session")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of the worker's two projects.

    They are shared by its tests, because OpenCode needs seconds and 100 MB for each new folder.
    """
    base = tmp_path_factory.mktemp("grounds").resolve()
    write_project(base / "project")
    write_project(base / "asking", ASK)
    return base

"""Fixtures: a twin, and our server attached to it, in the loop of each test.

Whatever a test does, nothing of it may be left: when all is closed, the loop has no other task.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from opencode_mcp.engine import judge_process
from opencode_mcp.engine.instances import Connection
from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.opencode.events import EventHub
from opencode_mcp.records import Instance, InstanceKind
from tests.support.bridges import Bridges
from tests.twin import Twin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.support.bridge import Bridge


@pytest_asyncio.fixture
async def nothing_left() -> AsyncIterator[None]:
    """Fail where a task outlives the twin and the servers of its test."""
    before = asyncio.all_tasks()
    yield
    for victim in multiprocessing.active_children():  # its test failed; it may even be stopped
        victim.kill()
        victim.join()
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    # sse-starlette keeps one of these for each loop, to see uvicorn exit
    left = {task for task in left if "_shutdown_watcher" not in repr(task)}
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


@pytest_asyncio.fixture
async def codex(bridges: Bridges, project: Path) -> Bridge:
    """Give our server with the Codex tools; sessions run in the project unless told otherwise."""
    return await bridges.attached(
        CODEX_TOOLS="true",
        DEFAULT_CWD=str(project),
        REQUEST_TIMEOUT_SECONDS="2",
        CLEANUP_TIMEOUT_SECONDS="4",
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a folder to work in."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder.resolve()


@pytest_asyncio.fixture
async def connect(twin: Twin) -> AsyncIterator[Callable[[InstanceKind], Connection]]:
    """Give a connection to the twin that takes it for one of ours, or for somebody else's."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            OpencodeClient(
                twin.url, username=twin.username, password=twin.password, request_timeout_s=5
            )
        )
        events = await stack.enter_async_context(EventHub(client))

        def make(kind: InstanceKind) -> Connection:
            url = twin.url if kind is InstanceKind.ATTACH else None
            return Connection(Instance("one", kind, url, None, None), client, events)

        yield make


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine put no judgement off."""
    monkeypatch.setattr(judge_process, "LIMIT_S", 100.0)

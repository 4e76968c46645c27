"""Facts 9, and 3.4: what a kill, a restart and a dispose do. These need a server of their own."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
import pytest
import pytest_asyncio

from tests.real.support.opencode_server import USERNAME, OpencodeServer
from tests.real.support.processes import Marker
from tests.real.support.sandbox import Sandbox, write_project
from tests.real.support.scripts import bash
from tests.scenarios.peer import Peer, Place, text_of, tools_of
from tests.support.polling import eventually
from tests.twin import Twin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from opencode_mcp.cli.scripted_model import ScriptedModel

    Deed = Callable[[], Awaitable[None]]


_ASK_BASH = [{"permission": "bash", "pattern": "*", "action": "ask"}]


@dataclass(frozen=True, slots=True)
class Mortal:
    """A peer that can be killed, and comes back with the same data on the same port."""

    place: Place
    kill: Deed
    start: Deed
    #: the shell commands that run; None: look in the process table
    shells: list[str] | None


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["twin", "real"])
async def mortal(
    request: pytest.FixtureRequest, model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Mortal]:
    base = tmp_path_factory.mktemp("mortal")
    project = write_project(base / "project")
    folders = (project, project)  # each further one costs OpenCode seconds, at each start
    workdir = write_project(base / "workdir")
    async with AsyncExitStack() as stack:
        if request.param == "twin":
            twin = await stack.enter_async_context(Twin(workdir))
            place = Place(twin.url, twin.username, twin.password, twin.model, *folders)
            yield Mortal(place, twin.kill, twin.listen, twin.shells)
        else:
            sandbox = Sandbox(base / "home", model.url)
            server = await stack.enter_async_context(OpencodeServer(sandbox, workdir))
            place = Place(server.url, USERNAME, server.password, model, *folders)
            yield Mortal(place, server.kill, server.start, None)


@pytest_asyncio.fixture(loop_scope="session")
async def peer(mortal: Mortal) -> AsyncIterator[Peer]:
    async with Peer(mortal.place) as client:
        yield client


@pytest.fixture
def marker() -> Iterator[Marker]:
    made = Marker()
    yield made
    made.kill()


def _runs(mortal: Mortal, marker: Marker) -> bool:
    return bool(marker.pids() if mortal.shells is None else marker.command in mortal.shells)


async def _begun(peer: Peer, mortal: Mortal, marker: Marker) -> tuple[str, str]:
    """Start a stream and a shell command, and wait until both run."""
    streams = await peer.begin("SLOW:600")
    await peer.streaming(streams)
    shell = await peer.begin(bash(marker.command))

    async def is_running() -> bool:
        return _runs(mortal, marker) and [
            state["status"] for state in tools_of(await peer.newest(shell))
        ] == ["running"]

    await eventually(is_running, what="the command runs")
    return streams, shell


@pytest.mark.rows("9.2", "9.3")
async def test_9_1_a_kill_leaves_half_written_messages_and_nothing_runs(
    peer: Peer, mortal: Mortal, marker: Marker
) -> None:
    free = await peer.begin(bash("printf a"), permission=_ASK_BASH)
    (ask,) = await peer.asked(free)
    await peer.reply(ask, "always")
    streams, shell = await _begun(peer, mortal, marker)
    asks = await peer.begin(bash("echo hi"), permission=_ASK_BASH)
    await peer.asked(asks)
    async with peer.hear() as heard:
        await mortal.kill()
        await asyncio.wait_for(heard.ended.wait(), 10)
    with pytest.raises(aiohttp.ClientConnectorError):
        await peer.session(streams)
    alive = _runs(mortal, marker)
    await mortal.start()

    assert await peer.statuses() == {}
    for session_id in (streams, shell, asks):
        assert (await peer.session(session_id))["id"] == session_id
        info = (await peer.newest(session_id))["info"]
        assert "completed" not in info["time"]
        assert not {"error", "finish"} & set(info)
    assert alive, "shell commands outlive their OpenCode"
    assert await peer.asks(asks, "permission") == []
    assert text_of(await peer.newest(streams)) == ""
    before = await peer.messages(shell)
    await peer.abort(shell)
    assert await peer.messages(shell) == before

    await peer.prompt(shell, "SAY:alive")
    last = await peer.answered(shell)
    assert text_of(last) == "alive"
    assert [state["status"] for state in tools_of((await peer.answers(shell))[0])] == ["running"]
    asks_again = await peer.begin(bash("printf b"), permission=_ASK_BASH)
    await peer.asked(asks_again)  # what was allowed for good is forgotten: measured


@pytest.mark.rows("3.4")
async def test_9_5_a_dispose_aborts_in_order_and_ends_the_folders_stream(
    peer: Peer, mortal: Mortal, marker: Marker
) -> None:
    streams, shell = await _begun(peer, mortal, marker)
    asks = await peer.begin(bash("echo hi"), permission=_ASK_BASH)
    await peer.asked(asks)
    async with (
        peer.hear(f"/event?directory={peer.project}") as folder,
        peer.hear() as everything,
    ):
        one = await peer.post("/instance/dispose", directory=peer.project)
        await asyncio.wait_for(folder.ended.wait(), 10)
        everybody = await peer.post("/global/dispose")
        await everything.until(lambda event: event["type"] == "global.disposed")
        assert not everything.ended.is_set()

    assert (one.body, everybody.body) == (True, True)
    assert await peer.asks(asks, "permission") == []
    for session_id in (streams, shell, asks):
        error = (await peer.newest(session_id))["info"]["error"]["name"]
        assert error == "MessageAbortedError"
    assert not _runs(mortal, marker)
    assert (await peer.newest(await peer.run("SAY:alive")))["info"]["finish"] == "stop"

"""The twin's own promises: faults, and what no scenario can play on the real OpenCode."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import pytest
import pytest_asyncio

from opencode_mcp.opencode.client import OpencodeClient, Prompt
from opencode_mcp.opencode_errors import (
    OpencodeFailedError,
    OpencodeProtocolError,
    OpencodeTimeoutError,
    OpencodeUnavailableError,
)
from tests.real.support.sandbox import write_project
from tests.real.support.scripts import ENDLESS, bash, write
from tests.scenarios.peer import Peer, Place, text_of
from tests.support.polling import eventually
from tests.twin import (
    Body,
    Drip,
    DropStreams,
    Hang,
    Refuse,
    Reset,
    Restart,
    Silence,
    Status,
    Truncate,
    Twin,
)
from tests.worker import ASK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.twin import Planned
    from tests.twin.faults import Fault


@pytest_asyncio.fixture
async def twin(tmp_path: Path) -> AsyncIterator[Twin]:
    async with Twin(write_project(tmp_path / "workdir")) as running:
        yield running


@pytest_asyncio.fixture
async def peer(twin: Twin, tmp_path: Path) -> AsyncIterator[Peer]:
    folders = (write_project(tmp_path / "project"), write_project(tmp_path / "asking", ASK))
    place = Place(twin.url, twin.username, twin.password, twin.model, *folders)
    async with Peer(place) as client:
        yield client


@pytest_asyncio.fixture
async def client(twin: Twin) -> AsyncIterator[OpencodeClient]:
    async with OpencodeClient(
        twin.url, username=twin.username, password=twin.password, request_timeout_s=1.0
    ) as client:
        yield client


async def _create(client: OpencodeClient, peer: Peer) -> str:
    made = await client.create_session(peer.project, title="T", metadata={})
    return made.id


@pytest.mark.parametrize(
    ("fault", "error", "has_effect"),
    [
        (Reset(), OpencodeUnavailableError, False),
        (Reset(after=True), OpencodeUnavailableError, True),
        (Status(500), OpencodeFailedError, False),
        (Status(503, after=True), OpencodeUnavailableError, True),
        (Hang(), OpencodeTimeoutError, False),
        (Hang(after=True), OpencodeTimeoutError, True),
        (Body(), OpencodeProtocolError, True),
        (Body(b"<html>", "text/html"), OpencodeProtocolError, True),
        (Truncate(), OpencodeUnavailableError, True),
        (Drip(0.1), OpencodeTimeoutError, True),
        (Restart(), OpencodeUnavailableError, False),
        (Restart(after=True), OpencodeUnavailableError, True),
    ],
)
async def test_a_fault_shows_as_planned_and_acts_as_planned(  # noqa: PLR0913 - fixtures
    twin: Twin,
    peer: Peer,
    client: OpencodeClient,
    fault: Fault,
    error: type[Exception],
    *,
    has_effect: bool,
) -> None:
    planned: Planned = twin.fail(fault, method="POST", path="^/session$")
    with pytest.raises(error):
        await _create(client, peer)
    made = len(twin.world.sessions)
    planned.release()
    await _create(client, peer)

    assert made == int(has_effect)
    assert [seen.line for seen in planned.hits] == ["POST /session"]
    assert twin.lines() == ["POST /session", "POST /session"]


async def test_a_retry_after_is_sent(twin: Twin, peer: Peer) -> None:
    twin.fail(Status(429, retry_after="7"))
    reply = await peer.call("GET", "/session/status")

    assert (reply.status, reply.headers["Retry-After"]) == (429, "7")


async def test_a_hang_goes_on_when_it_is_released(twin: Twin, peer: Peer) -> None:
    planned = twin.fail(Hang(), method="POST", path="^/session$")
    task = asyncio.create_task(peer.create())
    await planned.reached.wait()
    assert twin.world.sessions == {}
    planned.release()

    assert await task in twin.world.sessions


async def test_the_nth_request_from_now_is_hit_and_streams_do_not_count(
    twin: Twin, peer: Peer, client: OpencodeClient
) -> None:
    await peer.call("GET", "/path")
    planned = twin.fail(Status(500), nth=2, times=2)
    async with client.stream_events(silence_s=5):
        statuses = [(await peer.call("GET", "/path")).status for _ in range(4)]

    assert statuses == [200, 500, 500, 200]
    assert len(planned.hits) == 2


async def test_a_refused_connection_is_one_that_was_never_made(
    twin: Twin, peer: Peer, client: OpencodeClient
) -> None:
    twin.fail(Refuse())
    session_id = await _create(client, peer)

    async def is_refused() -> bool:
        try:
            await peer.session(session_id)
        except aiohttp.ClientConnectorError:
            return True
        except aiohttp.ClientError:
            return False
        return False

    await eventually(is_refused, what="connections are refused")
    with pytest.raises(OpencodeUnavailableError) as refused:
        await client.prompt_async(session_id, Prompt("msg_1", "SAY:x"))
    assert not refused.value.outcome_unknown
    await twin.listen()
    assert (await client.session(session_id)).id == session_id


async def test_event_streams_are_dropped_silenced_and_kept_alive(twin: Twin, peer: Peer) -> None:
    twin.pace.heartbeat_s = 0.05
    async with peer.hear() as heard:
        await heard.until(lambda event: event["type"] == "server.heartbeat", count=2)
        twin.fail(DropStreams())
        reply = await peer.call("GET", "/path")
        await asyncio.wait_for(heard.ended.wait(), 5)
    assert reply.status == 200

    silent = twin.fail(Silence(), path="/event$")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3), peer.hear():
            pass
    assert len(silent.hits) == 1


async def test_what_happens_just_after_connected_is_lost(
    twin: Twin, peer: Peer, client: OpencodeClient
) -> None:
    """Measured on 1.18.33: 14 of 25 sessions made at that moment were not told."""
    twin.pace.connecting_s = 0.2
    heard = b""
    async with client.stream_events(silence_s=5) as chunks:
        assert b"server.connected" in await anext(chunks)
        early = await peer.create()

        async def is_told() -> bool:
            return bool(twin.bus.streams)

        await eventually(is_told, what="the stream hears")
        late = await peer.create()
        while late.encode() not in heard:
            heard += await anext(chunks)

    assert early.encode() not in heard


async def test_a_prompt_resolves_as_slowly_as_wanted_and_an_abort_before_is_lost(
    twin: Twin, peer: Peer
) -> None:
    """Facts 4.6."""
    twin.pace.resolving_s = 0.2
    session_id = await peer.begin(ENDLESS)
    await peer.abort(session_id)
    assert await peer.messages(session_id) == []
    await peer.streaming(session_id)

    assert await peer.is_busy(session_id)


async def test_a_prompt_that_is_deleted_before_it_resolves_leaves_no_word(
    twin: Twin, peer: Peer
) -> None:
    """Facts 6.4."""
    twin.pace.resolving_s = 0.1
    session_id = await peer.create()
    async with peer.hear() as heard:
        await peer.prompt(session_id, "SAY:x")
        await peer.call("DELETE", f"/session/{session_id}")
        other = await peer.run("SAY:later")
        await heard.idle(other)

    assert [event["type"] for event in heard.of(session_id)] == ["session.deleted"]


async def test_compaction_in_the_middle_goes_on_with_a_prompt_of_its_own(
    twin: Twin, peer: Peer
) -> None:
    """Measured on 1.18.33 with a model of 20 tokens of context."""
    session_id = await peer.create()
    twin.compact_next(session_id)
    await peer.prompt(session_id, f"{bash('echo hi')}\nTHEN\nSAY:fin")
    await peer.answered(session_id)

    history = await peer.messages(session_id)
    kinds = [(m["info"]["role"], m["info"].get("summary")) for m in history]
    assert kinds == [
        ("user", {"diffs": []}),
        ("assistant", None),
        ("user", None),
        ("assistant", True),
        ("user", {"diffs": []}),
        ("assistant", None),
    ]
    assert history[2]["parts"][0]["type"] == "compaction"
    assert history[4]["parts"][0]["synthetic"] is True
    assert text_of(history[5]).startswith("You said: Continue")


async def test_in_a_git_folder_the_changed_files_are_told(peer: Peer) -> None:
    """Measured on 1.18.33: elsewhere the list stays empty."""
    (peer.place.project / ".git").mkdir()
    session_id = await peer.run(write(peer.place.project / "sub" / "new.txt", "a\nb\n"))

    history = await peer.messages(session_id)
    (diff,) = history[0]["info"]["summary"]["diffs"]
    assert (diff["file"], diff["additions"], diff["deletions"]) == ("sub/new.txt", 2, 0)
    assert diff["status"] == "added"
    assert history[1]["parts"][-1]["type"] == "patch"

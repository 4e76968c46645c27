"""Gaps in the event stream: who waits is woken, it is opened again, and leaves nothing behind."""

from __future__ import annotations

import asyncio

import pytest

from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.opencode.events import EventHub
from tests.opencode.fake_server import FakeServer, QuickClock, frame, free_port
from tests.opencode.hub_support import SOON_S, client_of, opened, settled


async def test_a_gap_wakes_when_it_opens_and_when_it_closes(
    server: FakeServer, hub: EventHub
) -> None:
    with hub.watch("ses_1") as watch:
        stream = await opened(server, watch)
        part = {"type": "tool", "tool": "bash", "callID": "call_1", "state": {"status": "running"}}
        stream.send("message.part.updated", sessionID="ses_1", part=part)
        stream.send("message.part.delta", sessionID="ses_1", partID="prt_1", delta="so far")
        await settled(stream, hub)
        assert ([call.tool for call in watch.running], watch.text_chars) == (["bash"], 6)
        server.streams_speak = False
        stream.end()
        assert await watch.wait(SOON_S)
        assert (hub.spoken, watch.running, watch.text_chars) == (False, [], None)
        async with asyncio.timeout(SOON_S):
            again = await server.streams.get()
        assert not await watch.wait(0)
        again.send("server.connected")
        assert await watch.wait(SOON_S)
        assert hub.spoken


async def test_a_stream_that_breaks_is_opened_again(server: FakeServer, hub: EventHub) -> None:
    with hub.watch("ses_1") as watch:
        stream = await opened(server, watch)
        stream.end()
        await opened(server, watch)


@pytest.mark.parametrize("drips", [False, True], ids=["no-byte", "only-comments"])
@pytest.mark.parametrize("spoke", [False, True], ids=["from-the-start", "after-an-event"])
async def test_a_stream_that_is_silent_is_replaced(
    server: FakeServer, *, spoke: bool, drips: bool
) -> None:
    server.streams_speak = spoke
    async with (
        client_of(server) as client,
        EventHub(client, heartbeat_s=0.1) as hub,
        asyncio.TaskGroup() as peer,
    ):
        with hub.watch("ses_1") as watch:
            async with asyncio.timeout(SOON_S):
                silent = await server.streams.get()
                if drips:
                    peer.create_task(silent.drip_comments())
                await silent.closed.wait()
            server.streams_speak = True
            async with asyncio.timeout(SOON_S):
                while not hub.spoken:
                    assert await watch.wait(SOON_S)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(frame("server.instance.disposed", directory="/p"), id="folder-disposed"),
        pytest.param(frame("global.disposed"), id="all-disposed"),
        pytest.param(b"data: {broken\n\n", id="unreadable"),
        pytest.param(b"data: " + b"x" * (9 * 1024 * 1024) + b"\n\n", id="oversize"),
    ],
)
async def test_an_event_that_may_concern_anybody_wakes_everybody(
    server: FakeServer, hub: EventHub, event: bytes
) -> None:
    with hub.watch("ses_1") as one, hub.watch("ses_2") as two:
        stream = await opened(server, one)
        assert await two.wait(SOON_S)
        stream.raw(event)
        assert await one.wait(SOON_S)
        assert await two.wait(SOON_S)


async def test_a_server_that_is_not_there_yet_is_found_later() -> None:
    late = FakeServer(free_port())
    async with client_of(late) as client, EventHub(client, clock=QuickClock()) as hub:
        with hub.watch("ses_1") as watch:
            assert not await watch.wait(0.05)
            async with late:
                await opened(late, watch)
                assert hub.spoken


async def test_a_stream_behind_a_wrong_password_or_another_program_wakes_nobody(
    server: FakeServer,
) -> None:
    async with (
        OpencodeClient(
            f"{server.url}/elsewhere", username="u", password=None, request_timeout_s=5
        ) as client,
        EventHub(client, clock=QuickClock()) as hub,
    ):
        with hub.watch("ses_1") as watch:
            assert not await watch.wait(0.05)
            assert not hub.spoken
    assert server.seen


async def test_leaving_the_hub_leaves_no_task_and_no_connection(server: FakeServer) -> None:
    before = asyncio.all_tasks()
    async with client_of(server) as client:
        async with EventHub(client) as hub:
            with hub.watch("ses_1") as watch:
                stream = await opened(server, watch)
        assert not hub.spoken
        async with asyncio.timeout(SOON_S):
            await stream.closed.wait()
        assert not {t for t in asyncio.all_tasks() - before if t.get_name().startswith("events")}


async def test_leaving_a_hub_that_nobody_used_is_quick_and_quiet(server: FakeServer) -> None:
    async with client_of(server) as client, EventHub(client):
        pass
    assert server.streams.empty()

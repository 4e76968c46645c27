"""The event stream: from bytes to events, and from events to whoever waits."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.opencode.events import EventHub
from opencode_mcp.opencode.sse import SseParser, read_event
from tests.opencode.fake_server import FakeServer, QuickClock, frame, free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from opencode_mcp.opencode.watch import Watch
    from tests.opencode.fake_server import Stream

#: how long a test waits for what must come
SOON_S = 5.0

# --- bytes to frames ---

_data = st.binary(max_size=20).map(lambda raw: raw.replace(b"\r", b"").replace(b"\n", b""))
_lines = st.one_of(
    _data.map(lambda data: b"data: " + data),
    _data.map(lambda data: b"data:" + data),
    _data.map(lambda data: b": " + data),
    st.sampled_from([b"", b"", b"event: x", b"id: 1", b"data", b"retry: 5", b"nonsense"]),
)
_streams = st.lists(
    st.tuples(_lines, st.sampled_from([b"\n", b"\r\n", b"\r"])).map(b"".join), max_size=30
).map(b"".join)


@given(stream=_streams, cuts=st.lists(st.integers(min_value=0, max_value=400), max_size=20))
def test_any_chunking_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    whole, cut = SseParser(max_bytes=60), SseParser(max_bytes=60)
    ends = sorted(min(end, len(stream)) for end in cuts)
    chunks = [stream[a:b] for a, b in zip([0, *ends], [*ends, len(stream)], strict=True)]
    assert [one for chunk in chunks for one in cut.feed(chunk)] == whole.feed(stream)
    assert cut.skipped_count == whole.skipped_count


@given(events=st.lists(_data.filter(bool), max_size=10), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_goes_in_comes_out(events: list[bytes], end: str) -> None:
    newline = end.encode()
    stream = b"".join(b"data: " + one + newline + newline for one in events)
    assert SseParser().feed(stream) == events


def test_several_data_lines_are_one_event_and_comments_are_none() -> None:
    assert SseParser().feed(b": hi\n\ndata: a\ndata:b\nid: 7\n\n:x\n\ndata: c") == [b"a\nb"]


def test_an_oversize_event_is_skipped_and_counted_and_the_next_one_is_read() -> None:
    parser = SseParser(max_bytes=100)
    frames = [one for _ in range(50) for one in parser.feed(b"data: " + b"x" * 50)]
    frames += parser.feed(b"\n\ndata: next\n\n")
    assert (frames, parser.skipped_count) == ([b"next"], 1)


def test_an_event_of_many_small_lines_has_the_same_limit() -> None:
    parser = SseParser(max_bytes=100)
    frames = [one for _ in range(50) for one in parser.feed(b"data: 1234567890\n")]
    assert (frames, parser.feed(b"\n"), parser.skipped_count) == ([], [], 1)


# --- frames to events ---


def data_of(chunk: bytes) -> bytes:
    return chunk.removeprefix(b"data: ").rstrip()


def test_an_event_is_told_from_its_beginning() -> None:
    event = read_event(data_of(frame("session.idle", sessionID="ses_1")))
    assert event is not None
    assert (event.kind, event.session_id) == ("session.idle", "ses_1")


@pytest.mark.parametrize(
    "text",
    [
        # the id comes first in a request, and last in an event without a session (1.18.33)
        '{"payload":{"id":"e","type":"x.y","properties":{"id":"per_1","sessionID":"ses_1"}}}',
        '{"payload":{"properties":{"sessionID":"ses_1"},"id":"e","type":"x.y"}}',
        '{"payload":{"type":"x.y","properties":{"info":{"sessionID":"ses_1"}}}}',
        '{"payload":{"type":"x.y","properties":{"part":{"sessionID":"ses_1"}}}}',
        '{ "directory" : "/p", "payload" : { "type":"x.y","properties":{"sessionID":"ses_1"}}}',
        '{"directory":"/a\\"b\\\\","payload":{"type":"x.y","properties":{"sessionID":"ses_1"}}}',
        '{"new":1,"payload":{"type":"x.y","properties":{"sessionID":"ses_1"}}}',
    ],
)
def test_an_event_of_another_order_or_spelling_is_understood(text: str) -> None:
    event = read_event(text.encode())
    assert event is not None
    assert (event.kind, event.session_id) == ("x.y", "ses_1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "7",
        '{"payload":7}',
        '{"payload":{}}',
        '{"payload":{"type":7}}',
        "\x00",
    ],
)
def test_what_is_no_event_is_none(text: str) -> None:
    assert read_event(text.encode()) is None


def test_a_sync_copy_is_of_no_session() -> None:
    text = '{"directory":"/p","payload":{"type":"sync","syncEvent":{"data":{"sessionID":"ses_1"}}}}'
    event = read_event(text.encode())
    assert event is not None
    assert (event.kind, event.session_id) == ("sync", None)


@given(hostile=st.text(), name=st.text())
def test_nothing_inside_a_value_poses_as_kind_or_session(hostile: str, name: str) -> None:
    posing = '","payload":{"type":"sync","properties":{"sessionID":"ses_2"'
    payload = {
        "id": "e",
        "type": "session.updated",
        "properties": {
            "sessionID": "ses_1",
            "info": {"title": hostile, "metadata": {name: {"payload": {"type": "sync"}}}},
        },
    }
    event = read_event(
        json.dumps(
            {"directory": hostile + posing, "payload": payload}, separators=(",", ":")
        ).encode()
    )
    assert event is not None
    assert (event.kind, event.session_id) == ("session.updated", "ses_1")


@given(raw=st.binary(max_size=200))
def test_no_bytes_break_the_reading(raw: bytes) -> None:
    read_event(raw)
    read_event(b'{"payload":{"type":"message.updated","properties":' + raw)


# --- events to whoever waits ---


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as running:
        yield running


@pytest.fixture
async def hub(server: FakeServer) -> AsyncIterator[EventHub]:
    async with client_of(server) as client, EventHub(client, clock=QuickClock()) as opened:
        yield opened


def client_of(server: FakeServer) -> OpencodeClient:
    return OpencodeClient(server.url, username="opencode", password="pw", request_timeout_s=5)


async def opened(server: FakeServer, watch: Watch) -> Stream:
    """Wait until the stream is up and the watch knows it."""
    async with asyncio.timeout(SOON_S):
        stream = await server.streams.get()
    assert await watch.wait(SOON_S)
    return stream


async def settled(stream: Stream, hub: EventHub) -> None:
    """Wait until the hub has read all that was sent: streams are in order."""
    with hub.watch("ses_marker") as marker:
        stream.send("session.idle", sessionID="ses_marker")
        assert await marker.wait(SOON_S)


async def test_the_stream_is_opened_by_the_first_watch_and_shared_by_the_next(
    server: FakeServer, hub: EventHub
) -> None:
    assert server.streams.empty()
    with hub.watch("ses_1") as first, hub.watch("ses_2") as second:
        stream = await opened(server, first)
        assert hub.spoken
        assert await second.wait(SOON_S)
        stream.send("session.idle", sessionID="ses_2")
        assert await second.wait(SOON_S)
    await settled(stream, hub)
    assert server.streams.empty()
    assert not stream.closed.is_set()


WAKING: dict[str, dict[str, object]] = {
    "session.idle": {},
    "session.status": {"status": {"type": "retry", "attempt": 1}},
    "session.error": {"error": {"name": "UnknownError"}},
    "session.deleted": {"info": {"id": "ses_1"}},
    "permission.asked": {"permission": "bash"},
    "permission.replied": {"reply": "once"},
    "question.asked": {"questions": []},
    "question.rejected": {"requestID": "que_1"},
}


@pytest.mark.parametrize("kind", sorted(WAKING))
async def test_what_may_change_a_turn_wakes(server: FakeServer, hub: EventHub, kind: str) -> None:
    with hub.watch("ses_1") as watch:
        stream = await opened(server, watch)
        stream.send(kind, sessionID="ses_1", **WAKING[kind])
        assert await watch.wait(SOON_S)


async def test_the_begin_of_a_turn_wakes_nobody(server: FakeServer, hub: EventHub) -> None:
    """Ours: its watcher knows of it, and a read for it would only slow it down."""
    with hub.watch("ses_1") as watch:
        stream = await opened(server, watch)
        stream.send("session.status", sessionID="ses_1", status={"type": "busy"})
        await settled(stream, hub)
        assert not await watch.wait(0)


@pytest.mark.parametrize(
    ("info", "wakes"),
    [
        ({"time": {"created": 1}}, False),
        ({"time": {"created": 1, "completed": 2}}, False),
        ({"time": {"created": 1}, "error": {"name": "APIError"}}, True),
    ],
    ids=["under-way", "completed", "failed"],
)
async def test_a_message_wakes_only_when_it_failed(
    server: FakeServer, hub: EventHub, info: dict[str, object], *, wakes: bool
) -> None:
    with hub.watch("ses_1") as watch:
        stream = await opened(server, watch)
        stream.send("message.updated", sessionID="ses_1", info=info)
        await settled(stream, hub)
        assert await watch.wait(0) is wakes


async def test_other_sessions_copies_and_streamed_text_do_not_wake(
    server: FakeServer, hub: EventHub
) -> None:
    with hub.watch("ses_1") as watch:
        stream = await opened(server, watch)
        stream.send("session.idle", sessionID="ses_2")
        stream.sync("session.idle", "ses_1")
        stream.send("message.part.delta", sessionID="ses_1", field="text", delta="word")
        stream.send("session.diff", sessionID="ses_1", diff=[])
        stream.send("server.heartbeat")
        stream.raw(b": comment\n\n")
        await settled(stream, hub)
        assert not await watch.wait(0)


async def test_many_events_are_one_wake(server: FakeServer, hub: EventHub) -> None:
    with hub.watch("ses_1") as watch:
        stream = await opened(server, watch)
        for _ in range(20):
            stream.send("session.idle", sessionID="ses_1")
        await settled(stream, hub)
        assert await watch.wait(0)
        assert not await watch.wait(0)


async def test_two_watches_of_one_session_both_wake(server: FakeServer, hub: EventHub) -> None:
    with hub.watch("ses_1") as one, hub.watch("ses_1") as two:
        stream = await opened(server, one)
        assert await two.wait(SOON_S)
        stream.send("session.idle", sessionID="ses_1")
        assert await one.wait(SOON_S)
        assert await two.wait(SOON_S)


async def test_leaving_one_of_two_watches_leaves_the_other(
    server: FakeServer, hub: EventHub
) -> None:
    with hub.watch("ses_1") as kept:
        stream = await opened(server, kept)
        with hub.watch("ses_1") as left:
            pass
        stream.send("session.idle", sessionID="ses_1")
        assert await kept.wait(SOON_S)
        assert not await left.wait(0)


async def test_a_watch_hears_nothing_after_its_block(server: FakeServer, hub: EventHub) -> None:
    with hub.watch("ses_1") as watch:
        stream = await opened(server, watch)
    stream.send("session.idle", sessionID="ses_1")
    await settled(stream, hub)
    assert not await watch.wait(0)


async def test_a_wait_without_news_ends_in_time(server: FakeServer, hub: EventHub) -> None:
    with hub.watch("ses_1") as watch:
        await opened(server, watch)
        assert not await watch.wait(0.01)


# --- sub-agents ---


async def test_a_grandchilds_event_wakes_the_root_also_if_it_was_born_before_the_watch(
    server: FakeServer, hub: EventHub
) -> None:
    with hub.watch("ses_other") as other:
        stream = await opened(server, other)
        stream.send("session.created", sessionID="ses_child", info={"parentID": "ses_root"})
        stream.send("session.updated", sessionID="ses_grand", info={"parentID": "ses_child"})
        await settled(stream, hub)
        with hub.watch("ses_root") as root:
            stream.send("permission.asked", sessionID="ses_grand", permission="bash")
            assert await root.wait(SOON_S)
        assert not await other.wait(0)


async def test_the_roots_event_does_not_wake_who_watches_the_child(
    server: FakeServer, hub: EventHub
) -> None:
    with hub.watch("ses_child") as child:
        stream = await opened(server, child)
        stream.send("session.created", sessionID="ses_child", info={"parentID": "ses_root"})
        stream.send("session.idle", sessionID="ses_root")
        await settled(stream, hub)
        assert not await child.wait(0)


async def test_a_deleted_child_wakes_its_root_and_parents_in_a_ring_end(
    server: FakeServer, hub: EventHub
) -> None:
    with hub.watch("ses_root") as root:
        stream = await opened(server, root)
        stream.send("session.created", sessionID="ses_child", info={"parentID": "ses_root"})
        stream.send("session.created", sessionID="ses_root", info={"parentID": "ses_child"})
        stream.send("session.deleted", sessionID="ses_child", info={"parentID": "ses_root"})
        assert await root.wait(SOON_S)


# --- gaps ---


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

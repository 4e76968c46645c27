"""The event stream, from events to whoever waits: what wakes, and whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.opencode.hub_support import SOON_S, opened, settled

if TYPE_CHECKING:
    from opencode_mcp.opencode.events import EventHub
    from tests.opencode.fake_server import FakeServer


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

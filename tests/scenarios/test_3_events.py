"""Facts 3: what the event streams say, about whom, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.support.scripts import ENDLESS, bash
from tests.scenarios.peer import text_of

if TYPE_CHECKING:
    from tests.scenarios.peer import Peer


async def test_3_1_a_stream_begins_with_connected_and_replays_nothing(peer: Peer) -> None:
    session_id = await peer.run("SAY:before")
    path = f"/event?directory={peer.project}"
    async with peer.hear(path, **{"Last-Event-ID": "0"}) as heard:
        other = await peer.create()
        await heard.until(lambda event: event["type"] == "session.created")

    first = heard.frames[0]
    assert first["type"] == "server.connected"
    assert first["properties"] == {}
    assert set(first) == {"id", "type", "properties"}
    assert "session.created" in heard.kinds(other)
    assert "session.created" not in heard.kinds(session_id)


async def test_3_2_the_global_stream_names_the_folder_and_copies_what_is_stored(
    peer: Peer,
) -> None:
    async with peer.hear(f"/global/event?directory={peer.project}") as heard:
        session_id = await peer.create(peer.asking)
        await heard.until(lambda event: event["type"] == "session.created")
        await peer.call("DELETE", f"/session/{session_id}")
        await heard.until(lambda event: event["type"] == "session.deleted")

    connected = heard.frames[0]["payload"]
    assert set(heard.frames[0]) == {"payload"}
    assert connected["type"] == "server.connected"
    created = [f for f in heard.frames if f["payload"]["type"] == "session.created"]
    assert created[0]["directory"] == peer.asking
    assert "project" in created[0]
    copies = [f["payload"]["syncEvent"] for f in heard.frames if f["payload"]["type"] == "sync"]
    mine = [copy for copy in copies if copy["aggregateID"] == session_id]
    assert [copy["type"] for copy in mine] == ["session.created.1", "session.deleted.1"]
    assert mine[0]["data"] == created[0]["payload"]["properties"]


async def test_3_3_a_folders_stream_tells_nothing_of_another(peer: Peer) -> None:
    scoped = {"x-opencode-directory": peer.asking}
    async with peer.hear("/event", **scoped) as asking, peer.hear() as everything:
        elsewhere = await peer.run("SAY:hi")
        here = await peer.create(peer.asking)
        await asking.until(lambda event: event["type"] == "session.created")

    assert asking.kinds(elsewhere) == []
    assert asking.kinds(here) == ["session.created"]
    assert "session.idle" in everything.kinds(elsewhere)


async def test_3_5_a_simple_turn_goes_on_after_its_idle(peer: Peer) -> None:
    async with peer.hear() as heard:
        session_id = await peer.begin("SAY:hello")
        await heard.idle(session_id)
        await heard.until(lambda e: e["type"] == "session.diff", count=2)  # the second is late

    assert without_summaries(heard.kinds(session_id)) == [
        *("session.created", "user", "text", "busy"),
        *("assistant", "busy", "step-start", "text", "text", "step-finish"),
        *("assistant", "assistant", "busy", "idle", "session.idle"),
    ]
    kinds = [event["type"] for event in heard.of(session_id)]
    after = kinds[kinds.index("session.idle") + 1 :]
    assert "session.updated" in after
    assert "session.diff" in after


def without_summaries(kinds: list[str]) -> list[str]:
    """Leave out the user message after its first time: its summary comes when it likes."""
    first = kinds.index("user")
    return [*kinds[: first + 1], *(kind for kind in kinds[first + 1 :] if kind != "user")]


async def test_3_6_a_tool_turn_has_a_message_a_step_and_one_idle(peer: Peer) -> None:
    async with peer.hear() as heard:
        session_id = await peer.begin(f"{bash('echo hi')}\nTHEN\nSAY:fin")
        await heard.idle(session_id)
        await peer.answered(session_id)

    kinds = without_summaries(heard.kinds(session_id))
    assert kinds[kinds.index("step-start") + 1] == "pending"
    tool = [kind for kind in kinds if kind in {"pending", "running", "completed"}]
    assert (tool[0], tool[-1], set(tool[1:-1])) == ("pending", "completed", {"running"})
    assert kinds.count("session.idle") == 1
    assert kinds[-2:] == ["idle", "session.idle"]
    first, second = await peer.answers(session_id)
    assert (first["info"]["finish"], second["info"]["finish"]) == ("tool-calls", "stop")
    assert first["info"]["parentID"] == second["info"]["parentID"]


@pytest.mark.parametrize("reply", ["once", "reject"])
async def test_3_6_an_answered_permission_is_told_before_its_tool(peer: Peer, reply: str) -> None:
    async with peer.hear() as heard:
        session_id = await peer.begin(f"{bash('echo hi')}\nTHEN\nSAY:fin", peer.asking)
        (ask,) = await peer.asked(session_id)
        await peer.reply(ask, reply)
        await heard.idle(session_id)

    kinds = without_summaries(heard.kinds(session_id))
    asked, replied = kinds.index("permission.asked"), kinds.index("permission.replied")
    assert kinds[asked - 1] == "pending"
    assert asked < replied
    after = [kind for kind in kinds[replied + 1 :] if kind != "running"]
    assert after[0] == {"once": "completed", "reject": "error"}[reply]
    if reply == "reject":
        assert after[1:] == ["step-finish", "assistant", "assistant", "idle", "session.idle"]


async def test_3_7_streamed_text_is_stored_only_when_its_part_ends(peer: Peer) -> None:
    session_id = await peer.create()
    async with peer.hear() as heard:
        await peer.prompt(session_id, "SLOW:600")
        deltas = await heard.until(lambda event: event["type"] == "message.part.delta", count=3)
        meanwhile = await peer.newest(session_id)
        await peer.abort(session_id)

    said = deltas[0]["properties"]
    assert set(said) == {"sessionID", "messageID", "partID", "field", "delta"}
    assert (said["sessionID"], said["field"], said["delta"]) == (session_id, "text", "w0 ")
    assert [part["type"] for part in meanwhile["parts"]] == ["step-start", "text"]
    assert text_of(meanwhile) == ""
    assert text_of(await peer.newest(session_id)).startswith("w0 w1 w2 ")


async def test_3_8_an_aborted_turn_is_idle_before_its_message_says_so(peer: Peer) -> None:
    session_id = await peer.create()
    async with peer.hear() as heard:
        await peer.prompt(session_id, ENDLESS)
        await heard.until(lambda event: event["type"] == "message.part.delta")
        await peer.abort(session_id)
        await heard.idle(session_id, count=2)

    kinds = heard.kinds(session_id)
    assert kinds[kinds.index("session.error") :] == [
        *("session.error", "idle", "session.idle"),
        *("text", "assistant", "idle", "session.idle"),
    ]
    error = next(e for e in heard.of(session_id) if e["type"] == "session.error")
    assert error["properties"]["error"]["name"] == "MessageAbortedError"


async def test_3_9_a_delete_has_an_event_for_each_session_and_an_archive_has_none(
    peer: Peer,
) -> None:
    parent = await peer.create()
    child = await peer.create(parentID=parent)
    async with peer.hear() as heard:
        await peer.call("PATCH", f"/session/{parent}", {"time": {"archived": 5}})
        await peer.call("DELETE", f"/session/{parent}")
        await heard.until(lambda event: event["type"] == "session.deleted", count=2)

    assert heard.kinds(child) == ["session.deleted"]
    assert heard.kinds(parent) == ["session.deleted"]
    updated = next(e for e in heard.of(parent) if e["type"] == "session.updated")
    assert updated["properties"]["info"]["time"]["archived"] == 5

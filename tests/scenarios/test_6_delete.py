"""Facts 6: delete and archive, and all that they do not do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.real.support.scripts import bash
from tests.scenarios.peer import text_of, tools_of
from tests.support.polling import eventually

if TYPE_CHECKING:
    from tests.scenarios.peer import Peer
    from tests.twin.shapes import Json


async def test_6_1_only_one_of_five_deletes_succeeds(peer: Peer) -> None:
    session_id = await peer.create()
    path = f"/session/{session_id}"
    replies = await asyncio.gather(
        *(peer.call("DELETE", path, directory=peer.asking) for _ in range(5))
    )
    gone = [await peer.call("GET", one) for one in (path, f"{path}/message?limit=3")]

    assert sorted(reply.status for reply in replies) == [200, 404, 404, 404, 404]
    assert [reply.body for reply in replies if reply.status == 200] == [True]
    assert [reply.status for reply in gone] == [404, 404]
    assert {reply.body["name"] for reply in gone} == {"NotFoundError"}


async def test_6_2_a_deleted_stream_is_read_to_its_end(peer: Peer) -> None:
    """Then it ends with an error, unless OpenCode tries again (`Hearing.tries_again`)."""
    session_id = await peer.create()
    async with peer.hear() as heard:
        await peer.prompt(session_id, "SLOW:40")
        await heard.until(lambda event: event["type"] == "message.part.delta", count=2)
        deleted = await peer.call("DELETE", f"/session/{session_id}")
        busy, streams = await peer.is_busy(session_id), peer.streams(session_id)
        tries_again = await heard.tries_again(session_id)
        if tries_again:
            await peer.abort(session_id, directory=peer.project)
        await heard.idle(session_id)

    assert (deleted.status, busy, len(streams)) == (200, True, 1)
    first, *further = [one.outcome for one in peer.requests(session_id)]
    assert first == "done"
    if not tries_again:
        assert further == []
        kinds = heard.kinds(session_id)
        assert kinds.index("session.deleted") < kinds.index("session.error")
        assert _faults(heard.of(session_id))[0] == "UnknownError"
    assert not await peer.is_busy(session_id)


async def test_6_2_an_abort_works_on_a_deleted_session_in_its_folder_only(peer: Peer) -> None:
    """Measured: without the folder it answers true too, and nothing happens (3 of 3)."""
    session_id = await peer.begin(bash("sleep 600"))

    async def runs() -> bool:
        newest = (await peer.messages(session_id))[-1:]
        return any(one["status"] == "running" for message in newest for one in tools_of(message))

    await eventually(runs, what="the command runs")
    await peer.call("DELETE", f"/session/{session_id}")
    busy = await peer.is_busy(session_id)
    await peer.abort(session_id)
    still_busy = await peer.is_busy(session_id)
    await peer.abort(session_id, directory=peer.project)

    assert (busy, still_busy) == (True, True)
    assert not await peer.is_busy(session_id)


async def test_6_4_a_prompt_that_is_deleted_at_once_does_not_run_on(peer: Peer) -> None:
    session_id = await peer.create()
    async with peer.hear() as heard:
        await peer.prompt(session_id, "SLOW:600")
        deleted = await peer.call("DELETE", f"/session/{session_id}")
        await heard.until(lambda event: event["type"] == "session.deleted")
        await peer.abort(session_id, directory=peer.project)  # should it have begun before
        await peer.quiet(session_id)

    assert deleted.status == 200
    assert not await peer.is_busy(session_id)
    assert not peer.streams(session_id)


@pytest.mark.rows("1.9")
async def test_6_5_an_archived_session_is_listed_works_and_does_not_come_back(peer: Peer) -> None:
    session_id = await peer.create()
    path = f"/session/{session_id}"
    archived = await peer.call("PATCH", path, {"time": {"archived": 5}})
    listed = await peer.get("/session", directory=peer.project)
    hidden = await peer.get("/experimental/session", directory=peer.project)
    await peer.prompt(session_id, "SAY:alive")
    last = await peer.answered(session_id)
    for value in (None, 0):
        await peer.call("PATCH", path, {"time": {"archived": value}})
        session = await peer.session(session_id)
        assert session["time"]["archived"] == (5 if value is None else value)

    assert archived.body["time"]["archived"] == 5
    assert session_id in {session["id"] for session in listed}
    assert session_id not in {session["id"] for session in hidden}
    assert text_of(last) == "alive"


async def test_6_6_an_archive_stops_nothing(peer: Peer) -> None:
    session_id = await peer.begin("SLOW:5\nSAY:to the end")
    await peer.streaming(session_id)
    reply = await peer.call("PATCH", f"/session/{session_id}", {"time": {"archived": 5}})
    busy = await peer.is_busy(session_id)
    last = await peer.answered(session_id)

    assert (reply.status, busy, last["info"]["finish"]) == (200, True, "stop")


async def test_6_7_metadata_is_replaced_as_a_whole_and_unknown_fields_are_ignored(
    peer: Peer,
) -> None:
    session_id = await peer.create(metadata={"a": 1, "b": 2}, unknown=1)
    before = await peer.session(session_id)
    patched = await peer.call("PATCH", f"/session/{session_id}", {"metadata": {"c": 3}, "odd": 1})

    assert before["metadata"] == {"a": 1, "b": 2}
    assert (patched.status, patched.body["metadata"]) == (200, {"c": 3})
    assert not {"odd", "unknown"} & set(patched.body)


def _faults(events: list[Json]) -> list[str]:
    return [e["properties"]["error"]["name"] for e in events if e["type"] == "session.error"]

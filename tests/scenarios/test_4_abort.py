"""Facts 4: what an abort stops, what it leaves, and when it is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.support.scripts import ENDLESS, bash
from tests.scenarios.peer import text_of, tools_of
from tests.support.polling import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenarios.peer import Peer

#: larger than the pause between a prompt and an abort that follows at once
_FILE_LINES = 60_000


@pytest.mark.parametrize("script", ["SAY:partly \nSLOW:600", "HANG"])
async def test_4_1_a_stream_is_stopped_when_the_abort_returns(peer: Peer, script: str) -> None:
    session_id = await peer.create()
    async with peer.hear() as heard:
        await peer.prompt(session_id, script)
        await peer.streaming(session_id)
        if "SLOW" in script:
            await heard.until(lambda event: event["type"] == "message.part.delta", count=3)
        await peer.abort(session_id)

    assert not await peer.is_busy(session_id)
    last = await peer.newest(session_id)
    assert last["info"]["error"] == {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
    assert "completed" in last["info"]["time"]
    assert "finish" not in last["info"]
    assert text_of(last).startswith("partlyw0 " if "SLOW" in script else "")

    async def is_left() -> bool:
        return not peer.streams(session_id)

    await eventually(is_left, what="the model's stream is closed")


async def test_4_2_a_shell_command_that_obeys_ends_as_completed(peer: Peer) -> None:
    session_id = await peer.begin(bash("echo out; sleep 600"))
    await _has_tool(peer, session_id, "out\n")
    await peer.abort(session_id)

    (state,) = tools_of(await peer.newest(session_id))
    assert state["status"] == "completed"
    assert state["output"].startswith("out\n")
    assert "User aborted the command" in state["output"]
    assert not await peer.is_busy(session_id)


async def test_4_2_one_that_ignores_signals_ends_as_an_error(peer: Peer) -> None:
    command = "trap '' TERM; echo out; sleep 5"
    session_id = await peer.begin(bash(command))
    await _has_tool(peer, session_id, "out\n")
    await peer.abort(session_id)

    (state,) = tools_of(await peer.newest(session_id))
    assert (state["status"], state["error"]) == ("error", "Tool execution aborted")
    assert state["metadata"]["interrupted"] is True


async def _has_tool(peer: Peer, session_id: str, output: str) -> None:
    async def check() -> bool:
        states = tools_of(await peer.newest(session_id))
        return any((one.get("metadata") or {}).get("output") == output for one in states)

    await eventually(check, what="the command has said something")


async def test_4_3_a_pending_permission_ends_as_an_error(peer: Peer) -> None:
    session_id = await peer.begin(bash("echo hi"), peer.asking)
    await peer.asked(session_id)
    await peer.abort(session_id)

    last = await peer.newest(session_id)
    (state,) = tools_of(last)
    assert (state["status"], state["error"]) == ("error", "Tool execution aborted")
    assert last["info"]["error"]["name"] == "MessageAbortedError"
    assert len(await peer.asks(session_id, "permission")) == 1


@pytest.mark.rows("8.5")
async def test_4_4_an_abort_in_back_off_leaves_no_trace(peer: Peer) -> None:
    session_id = await peer.create()

    async def retries() -> bool:
        return (await peer.statuses()).get(session_id, {}).get("type") == "retry"

    async with peer.hear() as heard:
        await peer.prompt(session_id, "STATUS:503,,600")
        await eventually(retries, what="the provider is asked again later")
        status = (await peer.statuses())[session_id]
        await peer.abort(session_id)
        await heard.idle(session_id)

    assert (status["attempt"], status["message"]) == (1, "scripted 503")
    assert status["next"] > 0
    assert not await peer.is_busy(session_id)
    info = (await peer.newest(session_id))["info"]
    assert "completed" in info["time"]
    assert not {"error", "finish"} & set(info)
    assert "session.error" not in heard.kinds(session_id)


async def test_4_5_an_abort_of_what_does_not_run_answers_true(peer: Peer) -> None:
    session_id = await peer.create()
    deleted = await peer.create()
    await peer.call("DELETE", f"/session/{deleted}")
    async with peer.hear() as heard:
        for one in (session_id, session_id, deleted, "ses_unknown"):
            await peer.abort(one)
        await heard.idle(session_id, count=2)
    bad = await peer.post("/session/unknown/abort")

    assert heard.kinds(session_id) == ["idle", "session.idle"] * 2
    assert (bad.status, bad.body["name"]) == (500, "UnknownError")


async def test_4_6_an_abort_before_the_prompt_is_resolved_is_lost(
    peer: Peer, tmp_path: Path
) -> None:
    file = tmp_path / "large.txt"
    file.write_text("x" * 40 + "\n" + "y\n" * _FILE_LINES, encoding="utf-8")
    part = {"type": "file", "mime": "text/plain", "filename": file.name, "url": file.as_uri()}
    session_id = await peer.create()
    message_id = await peer.prompt(session_id, "", parts=[{"type": "text", "text": ENDLESS}, part])
    await peer.abort(session_id)
    early = await peer.call("GET", f"/session/{session_id}/message/{message_id}")
    await peer.streaming(session_id)

    assert early.status == 404
    assert await peer.is_busy(session_id)
    await peer.abort(session_id)  # its message exists: not lost
    assert not await peer.is_busy(session_id)


async def test_4_6_an_abort_as_soon_as_the_message_exists_is_not_lost(peer: Peer) -> None:
    session_id = await peer.create()
    message_id = await peer.prompt(session_id, ENDLESS)

    async def exists() -> bool:
        path = f"/session/{session_id}/message/{message_id}"
        return (await peer.call("GET", path)).status == 200

    await eventually(exists, what="the prompt is seen")
    await peer.abort(session_id)
    await peer.quiet(session_id)

    assert not peer.streams(session_id)
    errors = [m["info"]["error"]["name"] for m in await peer.answers(session_id)]
    assert set(errors) <= {"MessageAbortedError"}


async def test_4_7_a_race_with_the_end_has_one_of_two_outcomes(peer: Peer) -> None:
    session_id = await peer.create()
    async with peer.hear() as heard:
        await peer.prompt(session_id, "SLOW:3,50")
        await heard.until(lambda event: event["type"] == "message.part.delta", count=3)
        await peer.abort(session_id)
    first = await peer.newest(session_id)
    await peer.quiet(session_id)

    info = first["info"]
    assert "completed" in info["time"]
    aborted = info.get("error", {}).get("name") == "MessageAbortedError"
    assert aborted != (info.get("finish") == "stop")
    assert await peer.newest(session_id) == first

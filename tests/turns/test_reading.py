"""What OpenCode says of a turn: late, contradictory, unreadable, of another folder."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.polling import eventually
from tests.turns.reading import always_busy, held, only_session, streaming, submissions
from tests.twin import Body, Drip, Hang, Reset, Status, Truncate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.twin import Twin
    from tests.twin.faults import Fault, Planned

STATUS = r"^/session/status$"
MESSAGES = r"^/session/[^/]+/message$"

#: everything that is read while a turn runs and when it ends
READS = {"status": STATUS, "messages": MESSAGES, "children": r"/children$"}
FAULTS: dict[str, Fault] = {
    "html": Body(b"<html>hello", "text/html"),
    "not-json": Body(b"this is not JSON"),
    "another-shape": Body(b'{"unexpected":[true]}'),
    "null": Body(b"null"),
    "truncated": Truncate(),
    "reset": Reset(),
    "500": Status(500),
    "502": Status(502),
    "503": Status(503, retry_after="1"),
    "429": Status(429, retry_after="1"),
    "401": Status(401),
    "slow": Drip(0.0005),
    "hang": Hang(),
}


def folders_asked(twin: Twin) -> set[str | None]:
    """Return the folders whose status was read."""
    return {s.query.get("directory") for s in twin.requests if s.path == "/session/status"}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("fault", FAULTS)
async def test_an_answer_that_cannot_be_read_is_asked_for_again(
    bridge: Bridge, twin: Twin, project: Path, read: str, fault: str
) -> None:
    """Three times in a row, in the middle of a turn: the turn is neither lost nor given up."""
    with held(twin):
        call = asyncio.create_task(bridge.start("SLOW:20,1", project))
        await streaming(twin)
        planned = twin.fail(FAULTS[fault], path=READS[read], times=3)
    answer = await call
    planned.release()
    if answer.status != "completed":
        answer = await bridge.settled(answer.session_id)

    assert (answer.status, "w19" in answer.text) == ("completed", True)
    assert len(submissions(twin)) == 1
    assert planned.hits or read == "children", "it was asked"


async def test_a_status_that_is_late_is_waited_out(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Case B07: busy for 3 s after the final message."""
    session_id = (await bridge.start("SAY:ready", project)).session_id
    busy = always_busy(twin, session_id)
    refused = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:no")
    busy.release()
    reply = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:on")

    assert refused.error == "SESSION_BUSY"
    assert (reply.status, "on" in reply.text) == ("completed", True)
    assert submissions(twin) == ["SAY:ready", "SAY:on"]


async def test_the_answer_is_given_although_the_status_stays_busy(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Case B07, for ever: the answer after a settle time; a reply is refused, an end works."""
    with held(twin):
        call = asyncio.create_task(bridge.start("SAY:told", project, wait_seconds=20))
        await streaming(twin)
        session_id = only_session(twin)
        busy = always_busy(twin, session_id)
    answer = await call
    refused = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:no")
    busy.release()
    ended = await bridge.end(session_id)

    assert (answer.status, "told" in answer.text) == ("completed", True)
    assert answer.structured["warnings"], "it says that OpenCode still calls it busy"
    assert refused.error == "SESSION_BUSY"
    assert "opencode-end" in refused.text
    assert "opencode-cancel" in refused.text
    assert ended.status == "ended"


async def test_each_session_is_asked_for_in_its_own_folder(
    bridge: Bridge, twin: Twin, tmp_path: Path
) -> None:
    """Case B09: OpenCode's status is per folder (facts 1.7)."""
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
    sessions = [await bridge.begin("HANG", folder) for folder in folders]
    await streaming(twin, count=2)
    running = await bridge.listed()
    looks = [(await bridge.status(session_id)).status for session_id in sessions]
    await twin.runs.abort(sessions[0])
    settled = await bridge.settled(sessions[0])
    later = await bridge.listed()

    assert set(running.values()) == {"running"}
    assert looks == ["running", "running"]
    assert settled.status == "cancelled"
    assert (later[sessions[0]], later[sessions[1]]) != ("running", "idle")
    asked = {
        seen.query.get("directory") for seen in twin.requests if seen.path == "/session/status"
    }
    assert asked == {str(folder.resolve()) for folder in folders}


async def test_a_session_that_opencode_keeps_in_another_folder_is_asked_for_there(
    bridge: Bridge, twin: Twin, project: Path, tmp_path: Path
) -> None:
    """Case B09: some versions stored another folder than they were asked for; theirs counts."""
    elsewhere = str(tmp_path / "elsewhere")
    create = twin.world.create
    twin.world.create = lambda directory, body: create(  # type: ignore[method-assign]
        directory and elsewhere, body
    )
    answer = await bridge.start("SLOW:20,1", project)

    assert answer.status == "completed"
    assert answer.structured["directory"] == elsewhere
    asked = {
        seen.query.get("directory") for seen in twin.requests if seen.path == "/session/status"
    }
    assert asked == {elsewhere}


@pytest.mark.parametrize(
    "says",
    [
        pytest.param(Body(b"<html>the web app", "text/html"), id="other-routes"),
        pytest.param(Body(b'{"healthy":true,"version":"2.0.0"}'), id="same-routes"),
    ],
)
async def test_an_opencode_of_another_generation_is_told_which_ones_we_drive(
    bridge: Bridge, twin: Twin, project: Path, says: Fault
) -> None:
    """Case 27: no time-out, nothing is sent, and the versions are named."""
    twin.fail(says, path=r"^/", times=None)
    began = time.monotonic()
    answer = await bridge.call("opencode", prompt="SAY:x", cwd=str(project))

    assert (answer.is_error, answer.error) == (True, "OPENCODE_UNSUPPORTED")
    assert "1.18" in answer.text
    assert time.monotonic() - began < 5
    assert answer.structured["resendSafety"] == "not_submitted"
    assert twin.world.sessions == {}


async def test_an_opencode_that_was_down_at_the_first_call_is_used_at_the_next(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    await twin.refuse()
    down = await bridge.call("opencode", prompt="SAY:x", cwd=str(project))
    await twin.listen()
    up = await bridge.start("SAY:up", project)

    assert down.error == "OPENCODE_UNAVAILABLE"
    assert (up.status, "up" in up.text) == ("completed", True)


async def test_a_deleted_session_is_told_as_gone(bridge: Bridge, twin: Twin, project: Path) -> None:
    """Somebody else deleted it while its turn ran (facts 6.2)."""
    call = asyncio.create_task(bridge.start("HANG", project))
    await streaming(twin)
    await twin.runs.abort(only_session(twin))
    twin.world.delete(only_session(twin))
    answer = await call

    assert answer.status == "cancelled"
    assert twin.runs.running == {}


async def test_a_hung_opencode_does_not_hang_the_look_at_it(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Contract §3: `unknown` is no error, and the turn is not given up."""
    with held(twin):
        session_id = await bridge.begin("SAY:told", project)
        hung = twin.fail(Hang(), times=None)
    began = time.monotonic()
    status = await bridge.status(session_id)
    took_s = time.monotonic() - began
    hung.release()
    settled = await bridge.settled(session_id)

    assert (status.status, status.is_error) == ("unknown", False)
    assert took_s < 8
    assert (settled.status, "told" in settled.text) == ("completed", True)


async def test_a_turn_goes_on_through_a_hang_and_is_answered_after_it(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    with held(twin):
        call = asyncio.create_task(bridge.start("SAY:told", project))
        await streaming(twin)
        hung = twin.fail(Hang(), path=r"^/(session|permission|question)", times=None)
        await eventually(lambda: _reached(hung), what="it was asked while it hung")
    hung.release()
    answer = await call

    assert (answer.status, "told" in answer.text) == ("completed", True)


async def _reached(planned: Planned) -> bool:
    return planned.reached.is_set()


async def test_a_turn_of_more_than_a_hundred_messages_is_read_to_its_beginning(
    bridge: Bridge, project: Path
) -> None:
    """OpenCode gives pages of a hundred (facts 11.1); on the real one this turn takes a minute."""
    call = 'TOOL:{"name":"bash","args":{"command":"echo x","description":"say"}}'
    steps = [f"SAY:step {number}\n{call}" for number in range(105)]
    answer = await bridge.start("\nTHEN\n".join([*steps, "SAY:the end"]), project)

    assert answer.status == "completed"
    assert answer.text.startswith("the end")
    assert answer.structured["toolCallCount"] == 105


async def test_many_lists_at_once_ask_opencode_once_or_twice(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = await bridge.begin("HANG", project)
    since = len(twin.requests)
    listed = await asyncio.gather(*(bridge.listed() for _ in range(40)))
    assert [set(each) for each in listed] == [{session_id}] * 40
    asked = [line for line in twin.lines(since) if line.startswith("GET /session/status")]
    assert 1 <= len(asked) <= 10

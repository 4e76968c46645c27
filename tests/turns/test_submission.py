"""From the prompt to the turn: an answer that is lost, refused, late, or a lie."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.polling import eventually
from tests.turns.reading import only_session, said, settled_end, submissions
from tests.twin import Body, Hang, Refuse, Reset, Restart, Status, Truncate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Answer, Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin
    from tests.twin.faults import Fault

PROMPT = r"/prompt_async$"


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Reset(after=True), id="reset"),
        pytest.param(Hang(after=True), id="hang"),
        pytest.param(Status(500, after=True), id="500"),
        pytest.param(Status(502, after=True), id="502"),
        pytest.param(Status(503, retry_after="1", after=True), id="503"),
        pytest.param(Body(b"<html>", "text/html"), id="html"),
        pytest.param(Truncate(), id="truncated"),
    ],
)
async def test_a_prompt_whose_answer_was_lost_is_found_and_goes_on(
    bridge: Bridge, twin: Twin, project: Path, fault: Fault
) -> None:
    """Case B15: exactly one POST; the stored message tells that it arrived."""
    twin.fail(fault, path=PROMPT)
    answer = await bridge.start("SAY:all the same", project)

    assert (answer.status, "all the same" in answer.text) == ("completed", True)
    assert submissions(twin) == ["SAY:all the same"]
    assert said(twin, answer.session_id) == ["SAY:all the same"]


async def test_a_reply_whose_answer_was_lost_is_found_and_goes_on(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = (await bridge.start("SAY:one", project)).session_id
    twin.fail(Reset(after=True), path=PROMPT)
    answer = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:two")

    assert (answer.status, answer.structured["turn"]) == ("completed", 2)
    assert submissions(twin) == said(twin, session_id) == ["SAY:one", "SAY:two"]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Reset(), id="reset"),
        pytest.param(Status(500), id="500"),
        pytest.param(Hang(), id="hang"),
    ],
)
async def test_a_prompt_of_which_nothing_is_known_quarantines_its_session(
    bridge: Bridge, twin: Twin, project: Path, fault: Fault
) -> None:
    """Contract §3: no reply gets in, the prompt is not sent again, an end works."""
    twin.fail(fault, path=PROMPT)
    answer = await bridge.call("opencode", prompt="SAY:lost", cwd=str(project))
    session_id = only_session(twin)
    listed = await bridge.listed()
    reply = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:more")
    ended = await settled_end(bridge, session_id)

    assert (answer.is_error, answer.error) == (True, "SUBMISSION_UNCONFIRMED")
    assert answer.structured["resendSafety"] == "unknown"
    assert session_id in answer.text
    assert listed == {session_id: "quarantined"}
    assert reply.error == "SESSION_BUSY"
    assert reply.structured["resendSafety"] == "not_submitted"
    assert submissions(twin) == ["SAY:lost"]
    assert ended.status == "ended"
    assert twin.world.sessions == {}


async def test_a_quarantine_is_released_by_the_message_that_appears(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Only evidence releases: here OpenCode was still resolving the prompt (facts 4.6)."""
    twin.pace.resolving_s = 3.0
    twin.fail(Reset(after=True), path=PROMPT)
    lost = await bridge.call("opencode", prompt="SAY:late", cwd=str(project))
    session_id = only_session(twin)
    twin.pace.resolving_s = 0.0
    settled: list[Answer] = []

    async def freed() -> bool:
        settled.append(await bridge.status(session_id))
        return settled[-1].status != "quarantined"

    await eventually(freed, what="the quarantine is released")
    settled.append(await bridge.settled(session_id))
    reply = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:on")

    assert lost.error == "SUBMISSION_UNCONFIRMED"
    assert (settled[-1].status, "late" in settled[-1].text) == ("completed", True)
    assert (reply.status, "on" in reply.text) == ("completed", True)
    assert submissions(twin) == said(twin, session_id) == ["SAY:late", "SAY:on"]


async def test_a_quarantined_session_says_so_and_its_status_is_no_error(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    twin.fail(Reset(), path=PROMPT)
    await bridge.call("opencode", prompt="SAY:lost", cwd=str(project))
    status = await bridge.status(only_session(twin))

    assert (status.status, status.is_error) == ("quarantined", False)
    assert "opencode-end" in status.text


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 429])
async def test_a_prompt_that_was_refused_may_be_sent_again(
    bridge: Bridge, twin: Twin, project: Path, code: int
) -> None:
    session_id = (await bridge.start("SAY:ready", project)).session_id
    twin.fail(Status(code), path=PROMPT)
    refused = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:no")
    again = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:yes")

    assert (refused.is_error, refused.structured["resendSafety"]) == (True, "not_submitted")
    assert again.status == "completed"
    assert submissions(twin) == ["SAY:ready", "SAY:no", "SAY:yes"]
    assert said(twin, session_id) == ["SAY:ready", "SAY:yes"]


async def test_a_prompt_that_never_left_may_be_sent_again(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """The connection is refused in the moment of the prompt: what was read before was fine."""
    session_id = (await bridge.start("SAY:ready", project)).session_id
    twin.fail(Refuse(), method="GET", path=r"/message$")  # the last read before the prompt
    refused = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:no")
    await twin.listen()
    again = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:yes")

    assert refused.error == "OPENCODE_UNAVAILABLE"
    assert refused.structured["resendSafety"] == "not_submitted"
    assert again.status == "completed"
    assert submissions(twin) == said(twin, session_id) == ["SAY:ready", "SAY:yes"]


@pytest.mark.parametrize("code", [400, 401, 429])
async def test_a_start_that_was_refused_leaves_no_prompt(
    bridge: Bridge, twin: Twin, project: Path, code: int
) -> None:
    twin.fail(Status(code), method="POST", path=r"^/session$")
    answer = await bridge.call("opencode", prompt="SAY:no", cwd=str(project))

    assert (answer.is_error, answer.structured["resendSafety"]) == (True, "not_submitted")
    assert twin.world.sessions == {}
    assert await bridge.listed() == {}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Reset(after=True), id="reset"),
        pytest.param(Truncate(), id="truncated"),
        pytest.param(Body(b"<html>", "text/html"), id="html"),
        pytest.param(Status(500, after=True), id="500"),
    ],
)
async def test_a_session_whose_creation_was_not_answered_is_found(
    bridge: Bridge, twin: Twin, project: Path, fault: Fault
) -> None:
    """It carries the token of its start; a second one would stay behind for ever."""
    twin.fail(fault, method="POST", path=r"^/session$")
    answer = await bridge.start("SAY:found", project)

    assert answer.status == "completed"
    assert list(twin.world.sessions) == [answer.session_id]
    assert twin.lines().count("POST /session") == 1


async def test_a_prompt_that_was_taken_and_never_runs_is_told(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Case 23: 204, and never a turn; within 20 s it is said, and not "running" for ever."""
    twin.fail(Status(204), path=PROMPT)
    began = time.monotonic()
    answer = await bridge.start("SAY:nothing", project, wait_seconds=40)
    took_s = time.monotonic() - began
    twin.pace.resolving_s = 0.0
    again = await bridge.call("opencode-reply", sessionId=answer.session_id, prompt="SAY:something")

    assert (answer.status, answer.is_error) == ("failed", True)
    assert answer.error == "TURN_INCOMPLETE"
    assert took_s < 20
    assert (again.status, "something" in again.text) == ("completed", True)


async def test_a_model_that_went_away_after_it_was_checked_fails_the_turn(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Case B11: 204, the user message, and no answer (facts 2.4)."""
    offered = b'{"providers":[{"id":"nosuch","models":{"none":{"id":"none"}}}],"default":{}}'
    twin.fail(Body(offered), path=r"^/config/providers$", nth=2)  # the first read warms the folder
    began = time.monotonic()
    answer = await bridge.start("SAY:x", project, model="nosuch/none")

    assert (answer.status, answer.is_error) == ("failed", True)
    assert time.monotonic() - began < 10
    assert twin.runs.running == {}


async def test_a_start_does_not_wait_for_the_model(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Case B17: the asynchronous route is used."""
    started = await bridge.start("HANG", project, wait_seconds=0)
    status = await bridge.status(started.session_id)

    assert (started.status, status.status) == ("running", "running")
    assert f"POST /session/{started.session_id}/message" not in twin.lines()


async def test_each_reply_is_answered_by_its_own_turn(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Case B19."""
    session_id = (await bridge.start("SAY:ALPHA", project)).session_id
    beta = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:BETA")
    gamma = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:GAMMA")

    assert ("BETA" in beta.text, "GAMMA" in gamma.text) == (True, True)
    assert not {"ALPHA", "BETA"} & set(gamma.text.split())
    assert said(twin, session_id) == ["SAY:ALPHA", "SAY:BETA", "SAY:GAMMA"]


async def test_a_restart_in_the_moment_of_the_submission_is_no_second_prompt(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = (await bridge.start("SAY:ready", project)).session_id
    twin.fail(Restart(), path=PROMPT)
    answer = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:lost")

    assert answer.error == "SUBMISSION_UNCONFIRMED"
    assert submissions(twin) == ["SAY:ready", "SAY:lost"]
    assert (await settled_end(bridge, session_id)).status == "ended"


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "at-another-process"])
async def test_no_reply_is_taken_while_another_ones_prompt_is_on_its_way(
    bridges: Bridges, twin: Twin, project: Path, *, elsewhere: bool
) -> None:
    """Ours: also where an earlier turn of the session was kept, which is over."""
    first = await bridges.attached()
    second = await bridges.attached() if elsewhere else first
    session_id = (await first.start("SAY:one", project)).session_id
    ids = {"sessionId": session_id}
    assert not (await second.call("opencode-reply", prompt="SAY:two", **ids)).is_error
    held = twin.fail(Hang(), path=PROMPT)
    on_its_way = asyncio.create_task(first.call("opencode-reply", prompt="SAY:three", **ids))
    async with asyncio.timeout(20):
        await held.reached.wait()
    refused = await second.call("opencode-reply", prompt="SAY:four", **ids)
    held.release()

    assert refused.error == "SESSION_BUSY"
    assert "three" in (await on_its_way).text
    assert said(twin, session_id) == ["SAY:one", "SAY:two", "SAY:three"]


async def test_however_long_a_prompt_is_on_its_way_no_reply_is_taken(
    bridge: Bridge, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An OpenCode that hangs may hold it for longer than another process's is waited for."""
    monkeypatch.setattr("opencode_mcp.engine.turns._YOUNG_S", 0.0)
    ids = {"sessionId": (await bridge.start("SAY:one", project)).session_id}
    held = twin.fail(Hang(), path=PROMPT)
    on_its_way = asyncio.create_task(bridge.call("opencode-reply", prompt="SAY:two", **ids))
    async with asyncio.timeout(20):
        await held.reached.wait()
    refused = await bridge.call("opencode-reply", prompt="SAY:three", **ids)
    held.release()

    assert refused.error == "SESSION_BUSY"
    assert "two" in (await on_its_way).text
    assert said(twin, ids["sessionId"]) == ["SAY:one", "SAY:two"]

"""An end against everything else that may happen to its session at the same moment.

The table of these races, with what each side is answered, is in docs/ending.md.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.ends.scene import waits
from tests.real.support.sandbox import write_project
from tests.real.support.scripts import bash
from tests.turns.reading import held, nothing_runs, streaming
from tests.twin import Hang, Restart
from tests.worker import ASK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.bridge import Answer, Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Planned, Twin

ENDLESS = "SLOW:100000,50"
ABORT = ("POST", r"/abort$")
DELETE = ("DELETE", r"^/session/")


class Race:
    """An end that waits in front of OpenCode at one of its requests."""

    def __init__(self, bridge: Bridge, twin: Twin, session_id: str) -> None:
        self.session_id = session_id
        self._bridge = bridge
        self._twin = twin
        self._planned: Planned | None = None
        self._end: asyncio.Task[Answer] | None = None

    async def begin(self, at: tuple[str, str], **arguments: object) -> None:
        """Begin the end, and return when it waits."""
        self._planned = self._twin.fail(Hang(), method=at[0], path=at[1])
        self._end = asyncio.create_task(self._bridge.end(self.session_id, **arguments))
        await self._planned.reached.wait()

    def let_go(self) -> None:
        """Let the end go on."""
        assert self._planned is not None
        self._planned.release()

    async def finish(self) -> Answer:
        """Let the end go on, and return its answer."""
        self.let_go()
        assert self._end is not None
        return await self._end

    async def finish_well(self) -> Answer:
        """The same, and check that it came through."""
        answer = await self.finish()
        assert (answer.status, answer.is_error) == ("ended", False), answer.text
        assert self.session_id not in self._twin.world.sessions
        await nothing_runs(self._twin)
        return answer


@pytest_asyncio.fixture
async def race(bridge: Bridge, twin: Twin, project: Path) -> AsyncIterator[Race]:
    """Give a session whose turn streams, ready to be ended."""
    session_id = await bridge.begin(ENDLESS, project)
    await streaming(twin)
    yield Race(bridge, twin, session_id)
    twin.heal()


async def test_a_reply_to_a_session_that_is_ending_is_refused(race: Race, bridge: Bridge) -> None:
    await race.begin(ABORT)
    reply = await bridge.call("opencode-reply", sessionId=race.session_id, prompt="SAY:no")
    assert reply.error == "SESSION_BUSY"
    assert "is being ended" in reply.text
    assert (await race.finish_well()).structured["abortedRunningTurn"] is True
    reply = await bridge.call("opencode-reply", sessionId=race.session_id, prompt="SAY:no")
    assert reply.error == "SESSION_NOT_FOUND"


async def test_a_reply_whose_prompt_is_on_its_way_is_stopped_with_its_session(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    submitting = twin.fail(Hang(after=True), method="POST", path=r"/prompt_async$")
    reply = asyncio.create_task(bridge.call("opencode-reply", sessionId=session_id, prompt=ENDLESS))
    await submitting.reached.wait()
    end = await bridge.end(session_id)
    assert end.status == "ended", end.text
    assert end.structured["abortedRunningTurn"] is True
    submitting.release()
    answer = await reply
    assert answer.status == "cancelled" or answer.error == "SESSION_NOT_FOUND", answer.text
    await nothing_runs(twin)
    assert not twin.world.sessions


async def test_a_cancel_of_a_session_that_is_ending_joins_the_stop(
    race: Race, bridge: Bridge
) -> None:
    await race.begin(ABORT)
    cancel = await bridge.call("opencode-cancel", sessionId=race.session_id, wait_ms=0)
    assert not cancel.is_error, cancel.text
    assert (cancel.structured["accepted"], cancel.structured["done"]) == (True, False)
    assert cancel.status == "stopping"
    await race.finish_well()
    cancel = await bridge.call("opencode-cancel", sessionId=race.session_id)
    assert cancel.error == "SESSION_NOT_FOUND"


async def test_a_cancel_under_way_ends_as_cancelled_when_its_session_ends(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = await bridge.begin(ENDLESS, project)
    await streaming(twin)
    aborting = twin.fail(Hang(), method="POST", path=r"/abort$")
    cancel = asyncio.create_task(
        bridge.call("opencode-cancel", sessionId=session_id, wait_ms=10_000)
    )
    await aborting.reached.wait()
    end = await bridge.end(session_id)
    assert end.status == "ended", end.text
    aborting.release()
    answer = await cancel
    assert (answer.status, answer.structured["cancelled"]) == ("cancelled", True), answer.text


async def test_an_approval_in_a_session_that_is_ending_grants_nothing(
    bridge: Bridge, twin: Twin, tmp_path: Path
) -> None:
    asking = write_project(tmp_path / "asking", ASK).resolve()
    session_id = await bridge.begin(bash("echo hi"), asking, approval_policy="caller")
    await waits(twin, asking)
    (ask,) = (await bridge.status(session_id)).structured["pendingApprovals"]
    race = Race(bridge, twin, session_id)
    await race.begin(ABORT)
    answer = {"sessionId": session_id, "approvalId": ask["id"], "decision": "allow"}
    refused = await bridge.call("opencode-approve", **answer)
    assert refused.error == "SESSION_BUSY"
    assert (await race.finish_well()).structured["rejectedPermissions"] <= 1
    assert (await bridge.call("opencode-approve", **answer)).error == "SESSION_NOT_FOUND"
    granted = [seen for seen in twin.requests if seen.body and seen.body.get("reply") == "once"]
    assert granted == []


@pytest.mark.parametrize("tool", ["opencode-status", "opencode"])
async def test_who_watches_the_turn_is_told_that_its_session_was_ended(
    bridge: Bridge, twin: Twin, project: Path, tool: str
) -> None:
    if tool == "opencode":
        watching = asyncio.create_task(bridge.start(ENDLESS, project, wait_seconds=30))
        await streaming(twin)
        (session_id,) = twin.world.sessions
    else:
        session_id = await bridge.begin(ENDLESS, project)
        await streaming(twin)
        watching = asyncio.create_task(
            bridge.call("opencode-status", sessionId=session_id, wait_seconds=30)
        )
        await asyncio.sleep(0.2)  # it watches by then; if not, it finds no session
    race = Race(bridge, twin, session_id)
    await race.begin(ABORT)
    await race.finish_well()
    answer = await watching
    assert (answer.status, answer.is_error) == ("cancelled", False), answer.text
    assert "SESSION_ENDED" in {one["code"] for one in answer.structured["warnings"]}


async def test_two_ends_at_once_get_one_answer(race: Race, bridge: Bridge) -> None:
    await race.begin(ABORT)
    second = asyncio.create_task(bridge.end(race.session_id))
    first = (await race.finish_well()).structured
    again = (await second).structured
    for answer in (first, again):
        del answer["elapsedMs"]
    assert first == again


@pytest.mark.parametrize(
    ("first", "second"), [("delete", "archive"), ("archive", "delete")], ids=["conflict", "replace"]
)
async def test_two_ends_at_once_with_other_actions(
    race: Race, bridge: Bridge, twin: Twin, first: str, second: str
) -> None:
    await race.begin(ABORT, action=first)
    other = asyncio.create_task(bridge.end(race.session_id, action=second))
    if first == "delete":
        conflict = await other
        assert conflict.error == "END_CONFLICT"
    else:
        await asyncio.sleep(0.2)  # it has replaced the action, and joined
    ended = await race.finish_well()
    assert ended.structured["action"] == "delete"
    if first == "archive":
        assert (await other).structured["action"] == "delete"
    assert not twin.world.sessions


async def test_a_turn_that_completes_as_its_session_is_ended_is_told_as_it_was(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    with held(twin):
        session_id = await bridge.begin("SAY:to the end", project)
        await streaming(twin)
        race = Race(bridge, twin, session_id)
        await race.begin(ABORT)
    await nothing_runs(twin)  # it has completed
    ended = await race.finish_well()
    assert ended.structured["abortedRunningTurn"] is False


async def test_a_delete_by_somebody_else_during_an_end_is_its_end(
    race: Race, bridge: Bridge, twin: Twin, project: Path
) -> None:
    await bridge.start("SAY:witness of whose data it is", project)
    await race.begin(DELETE)
    await twin.runs.delete(race.session_id)
    ended = await race.finish_well()
    assert ended.structured["action"] == "delete"


async def test_a_delete_that_opencode_told_of_needs_no_other_session_as_a_witness(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    watched = await bridge.begin(ENDLESS, project)  # so the events are followed
    await streaming(twin)
    await twin.runs.delete(watched)
    await twin.runs.abort(watched, str(project))
    assert (await bridge.settled(watched)).status == "cancelled"
    assert not twin.world.sessions
    ended = await bridge.end(watched)
    assert ended.status == "ended", ended.text


async def test_what_begins_in_the_moment_of_the_delete_is_stopped_all_the_same(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """OpenCode: a deleted session can still run (facts 6.2)."""
    session_id = (await bridge.start("SAY:x", project)).session_id
    race = Race(bridge, twin, session_id)
    await race.begin(DELETE)
    body = {"parts": [{"type": "text", "text": "HANG"}]}
    twin.runs.submit(twin.world.sessions[session_id], body, "msg_of_somebody_else")
    await streaming(twin)
    await race.finish_well()


async def test_an_opencode_that_restarts_during_an_end_takes_the_turn_with_it(
    race: Race, twin: Twin
) -> None:
    restarting = twin.fail(Restart(), method="POST", path=r"/abort$")
    await race.begin(DELETE)
    assert restarting.hits
    await race.finish_well()


async def test_our_own_exit_during_an_end_leaves_it_to_the_next_process(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    first = await bridges.attached()
    session_id = await first.begin(ENDLESS, project)
    await streaming(twin)
    race = Race(first, twin, session_id)
    await race.begin(DELETE)
    await first.close()
    race.let_go()
    second = await bridges.attached()

    answer = await second.end(session_id)
    assert answer.status in {"ended", "not_found"}, answer.text
    assert session_id not in twin.world.sessions
    await nothing_runs(twin)

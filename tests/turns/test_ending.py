"""Ending a session while OpenCode is slow, down, forgetful or failing."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

import pytest

from tests.turns.reading import nothing_runs, only_session, settled_end, streaming
from tests.twin import Hang, Restart, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin

ABORT = r"/abort$"
#: `bridge`: an end may take 4 s, and a request 2 s
_ANSWERED_WITHIN_S = 8.0

#: case 44: ids made to reach another route or another session
HOSTILE = (
    "x/../ses_other",
    "../instance/dispose?x=",
    "ses_a?directory=/",
    "",
    "   ",
    "ses_a\nses_b",
    "ses_a,ses_b",
)


@pytest.mark.parametrize("how", ["down", "hung"])
async def test_an_end_in_an_outage_is_told_in_time_and_finished_later(
    bridge: Bridge, twin: Twin, project: Path, how: str
) -> None:
    """Case 45."""
    session_id = await bridge.begin("HANG", project)
    await streaming(twin)
    hung = twin.fail(Hang(), times=None) if how == "hung" else None
    if hung is None:
        await twin.refuse()
    began = time.monotonic()
    answer = await bridge.end(session_id)
    took_s = time.monotonic() - began
    existed = session_id in twin.world.sessions
    if hung is None:
        await twin.listen()
    else:
        hung.release()
    again = await settled_end(bridge, session_id)

    assert (answer.is_error, answer.error) == (True, "CLEANUP_UNCONFIRMED")
    assert (answer.structured["done"], existed) == (False, True)
    assert took_s < _ANSWERED_WITHIN_S
    assert again.status == "ended"
    assert twin.world.sessions == {}
    await nothing_runs(twin)


@pytest.mark.parametrize("action", ["delete", "archive"])
async def test_nothing_is_removed_before_an_abort_was_answered(
    bridge: Bridge, twin: Twin, project: Path, action: str
) -> None:
    """Case 46."""
    session_id = await bridge.begin("HANG", project)
    await streaming(twin)
    since = len(twin.requests)
    refused = twin.fail(Status(503), path=ABORT, times=2)
    ended = await bridge.end(session_id, action=action)
    removal = f"{'DELETE' if action == 'delete' else 'PATCH'} /session/{session_id}"
    sent = twin.lines(since)
    aborts = [index for index, line in enumerate(sent) if line.endswith("/abort")]

    assert ended.status == "ended"
    assert len(refused.hits) == 2
    assert sent.index(removal) > aborts[2], "the third one was answered"
    await nothing_runs(twin)


async def test_an_end_while_the_prompt_is_still_resolved_waits_for_it(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """An abort before the message exists is lost, and the turn starts afterwards (facts 4.6)."""
    twin.pace.resolving_s = 1.0
    session_id = await bridge.begin("HANG", project)
    ended = await bridge.end(session_id, action="archive")

    assert ended.status == "ended"
    await nothing_runs(twin)


@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5, 6])
async def test_an_opencode_that_dies_in_an_end_takes_nothing_with_it(
    bridge: Bridge, twin: Twin, project: Path, nth: int
) -> None:
    """At each request of the end in turn: what was accepted is finished when it is back."""
    session_id = await bridge.begin("HANG", project)
    await streaming(twin)
    twin.fail(Restart(), nth=nth)
    ended = await settled_end(bridge, session_id)

    assert ended.status == "ended"
    assert twin.world.sessions == {}
    assert (await bridge.end(session_id)).status == "not_found"


async def test_an_end_by_another_server_of_ours_is_seen_by_the_call_that_waits(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    owner, other = await bridges.attached(), await bridges.attached()
    call = asyncio.create_task(owner.start("HANG", project))
    await streaming(twin)
    session_id = only_session(twin)
    ended = await other.end(session_id)
    answer = await call

    assert (ended.status, ended.structured["abortedRunningTurn"]) == ("ended", True)
    assert answer.status == "cancelled"
    assert await owner.listed() == {}
    await nothing_runs(twin)


async def test_ids_of_another_kind_reach_nothing(bridge: Bridge, twin: Twin) -> None:
    """Case 44: refused or not found, and OpenCode hears nothing at all."""
    tools = {"opencode-reply": {"prompt": "SAY:x"}, "opencode-status": {}, "opencode-end": {}}
    for (tool, more), wrong in itertools.product(tools.items(), HOSTILE):
        answer = await bridge.call(tool, sessionId=wrong, **more)

        assert (
            answer.error in {"SESSION_NOT_FOUND", "INVALID_ARGUMENT"}
            or answer.status == "not_found"
        )
    assert twin.requests == []

"""Who cancels a call that others share: the newest of them owns the turn (contract §2.1)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from fastmcp.client.elicitation import ElicitResult

from opencode_mcp.engine.repeating import Repeats
from opencode_mcp.store.requests import Requests
from tests.repeating.repeats import ask, claimed, replayed, row_of
from tests.support.polling import eventually, steadily
from tests.turns.asks import QUESTION
from tests.turns.cancels import ENDLESS, aborts
from tests.turns.reading import only_session, streaming, submissions
from tests.twin import Hang

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Answer, Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin


async def stopped(twin: Twin) -> None:
    """Wait until the only turn was stopped."""

    async def check() -> bool:
        return aborts(twin) > 0 and not twin.runs.running

    await eventually(check, what="the turn is stopped")


async def runs_on(twin: Twin) -> None:
    """Fail if the only turn is stopped, or asked to stop."""

    async def check() -> bool:
        return bool(twin.runs.running) and aborts(twin) == 0

    await steadily(check, for_s=1, what="the turn runs on")


async def watched_by_two(
    bridges: Bridges, twin: Twin, project: Path, first: Bridge, second: Bridge
) -> tuple[asyncio.Task[Answer], asyncio.Task[Answer]]:
    """Let two calls share a turn; return them, the older one first."""
    older = asyncio.create_task(ask(first, ENDLESS, project))
    await streaming(twin)
    claim = await claimed(bridges)
    newer = asyncio.create_task(ask(second, ENDLESS, project))
    await claimed(bridges, but=claim)
    return older, newer


async def test_cancelling_a_superseded_call_leaves_the_turn_to_the_newest(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    older, newer = await watched_by_two(bridges, twin, project, bridge, bridge)
    older.cancel()
    await runs_on(twin)
    newer.cancel()
    await stopped(twin)


async def test_also_where_the_newest_call_came_to_another_process(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    one, two = await bridges.attached(), await bridges.attached()
    older, newer = await watched_by_two(bridges, twin, project, one, two)
    older.cancel()
    await runs_on(twin)
    newer.cancel()
    await stopped(twin)


async def test_the_newest_call_still_owns_the_turn_when_it_has_returned(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    older = asyncio.create_task(ask(bridge, ENDLESS, project))
    await streaming(twin)
    await claimed(bridges)
    assert (await ask(bridge, ENDLESS, project, wait_seconds=0)).status == "running"
    older.cancel()
    await runs_on(twin)


async def test_a_newest_call_that_is_cancelled_while_its_claim_is_written_stops_the_turn(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its write goes on without it, so that it becomes the newest after it has left."""
    older = asyncio.create_task(ask(bridge, ENDLESS, project))
    await streaming(twin)
    claim = await claimed(bridges)
    asked, left = asyncio.Event(), asyncio.Event()
    _tell_when_called(monkeypatch, Requests, "claim_request", asked)
    _tell_when_called(monkeypatch, Repeats, "joined", left)
    with closing(sqlite3.connect(bridges.database, isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        newer = asyncio.create_task(ask(bridge, ENDLESS, project))
        await asked.wait()
        newer.cancel()
        await left.wait()
        await steadily(lambda: _is(row_of(bridges) == claim), for_s=0.2, what="it is not written")
        file.execute("ROLLBACK")
    await claimed(bridges, but=claim)
    older.cancel()
    await stopped(twin)


async def test_a_cancel_is_not_lost_while_the_database_cannot_be_read(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    call = asyncio.create_task(ask(bridge, ENDLESS, project))
    await streaming(twin)
    await claimed(bridges)
    with closing(sqlite3.connect(bridges.database, isolation_level=None)) as file:
        file.execute("ALTER TABLE requests RENAME TO elsewhere")
        call.cancel()
        await runs_on(twin)
        file.execute("ALTER TABLE elsewhere RENAME TO requests")
    await stopped(twin)


async def _is(outcome: bool) -> bool:  # noqa: FBT001 - for `steadily`
    return outcome


def _tell_when_called(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, event: asyncio.Event
) -> None:
    real = getattr(owner, name)

    async def spied(*arguments: object) -> object:
        event.set()
        return await real(*arguments)

    monkeypatch.setattr(owner, name, spied)


async def test_where_the_operator_keeps_turns_no_cancelled_call_stops_one(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    bridge = await bridges.attached(ON_CALL_CANCEL="keep")
    older, newer = await watched_by_two(bridges, twin, project, bridge, bridge)
    newer.cancel()
    older.cancel()
    await runs_on(twin)


async def test_a_first_call_cancelled_while_it_begins_leaves_the_turn_to_who_waits_for_it(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    held = twin.fail(Hang(), method="POST", path=r"^/session$")
    older = asyncio.create_task(ask(bridge, ENDLESS, project, wait_seconds=2))
    await held.reached.wait()
    claim = await claimed(bridges)
    newer = asyncio.create_task(ask(bridge, ENDLESS, project, wait_seconds=2))
    await claimed(bridges, but=claim)
    older.cancel()
    held.release()

    answer = await newer
    assert (answer.status, replayed(answer)) == ("running", True)
    await runs_on(twin)
    assert submissions(twin) == [ENDLESS]


async def test_a_first_call_cancelled_while_it_begins_and_joined_by_nobody_stops_its_turn(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    held = twin.fail(Hang(), method="POST", path=r"^/session$")
    first = asyncio.create_task(ask(bridge, ENDLESS, project))
    await held.reached.wait()
    await claimed(bridges)
    first.cancel()
    await bridge.listed()  # the cancellation has arrived
    held.release()
    await stopped(twin)
    again = await ask(bridge, ENDLESS, project)
    assert (again.status, replayed(again)) == ("cancelled", True)
    assert submissions(twin) == [ENDLESS]


async def test_a_repeat_cancelled_while_it_waits_stops_the_turn_once_it_has_begun(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    """It was the newest: that the first one was cancelled before it stopped nothing."""
    held = twin.fail(Hang(), method="POST", path=r"^/session$")
    older = asyncio.create_task(ask(bridge, ENDLESS, project))
    await held.reached.wait()
    claim = await claimed(bridges)
    newer = asyncio.create_task(ask(bridge, ENDLESS, project))
    await claimed(bridges, but=claim)
    older.cancel()
    newer.cancel()
    await bridge.listed()  # both cancellations have arrived
    held.release()
    await stopped(twin)
    assert submissions(twin) == [ENDLESS]
    assert (await bridge.settled(only_session(twin))).status == "cancelled"


async def test_a_repeat_after_the_first_call_was_cancelled_tells_of_its_turn(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    first = asyncio.create_task(ask(bridge, ENDLESS, project))
    await streaming(twin)
    await claimed(bridges)
    first.cancel()
    await stopped(twin)
    again = await ask(bridge, ENDLESS, project)
    assert (again.status, replayed(again)) == ("cancelled", True)
    assert submissions(twin) == [ENDLESS]


class Thinking:
    """A person who can be waited for, and answers when told."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def __call__(self, *_: object) -> ElicitResult[dict[str, str]]:
        """Answer the question."""
        self.asked.set()
        await self.may_answer.wait()
        return ElicitResult(action="accept", content={"q1": "a"})


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_call_whose_person_is_asked_is_one_call_and_its_repeat_joins_it(
    bridges: Bridges, twin: Twin, project: Path, mode: str
) -> None:
    """`auto`: on 2026-07-28 the client itself repeats the call, with the person's answer."""
    person = Thinking()
    person.may_answer.set()
    bridge = await bridges.attached(mode="auto" if mode == "auto" else "legacy", person=person)
    policy = {"approval_policy": "on-request"}
    first = await ask(bridge, QUESTION, project, **policy)
    again = await ask(bridge, QUESTION, project, **policy)

    assert [one.status for one in (first, again)] == ["completed"] * 2
    assert [replayed(one) for one in (first, again)] == [False, True]
    assert "expiresAt" in first.structured["request"]
    assert len(submissions(twin)) == 1


async def test_a_call_that_its_client_repeats_with_an_answer_still_owns_its_turn(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    person = Thinking()
    person.may_answer.set()
    bridge = await bridges.attached(mode="auto", person=person)
    prompt = f"{QUESTION}\nTHEN\n{ENDLESS}"
    call = asyncio.create_task(ask(bridge, prompt, project, approval_policy="on-request"))
    await person.asked.wait()
    await streaming(twin)
    call.cancel()
    await stopped(twin)


async def test_a_replayed_call_that_its_client_repeats_with_an_answer_says_so(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    person = Thinking()
    person.may_answer.set()
    policy = {"approval_policy": "on-request"}
    bridge = await bridges.attached(mode="auto", person=person)
    first = await ask(bridge, QUESTION, project, wait_seconds=0, **policy)
    assert first.status == "running"
    again = await ask(bridge, QUESTION, project, **policy)

    assert person.asked.is_set()
    assert (again.status, replayed(again)) == ("completed", True)
    assert len(submissions(twin)) == 1


async def test_the_sealed_state_shows_nothing_of_the_request_id(
    bridge: Bridge, bridges: Bridges, project: Path
) -> None:
    await ask(bridge, "SAY:x", project)
    found = row_of(bridges)
    assert found is not None
    assert "order" not in json.dumps([found.call, found.newest_call])

"""The same call again, at one server: it joins the first one, and no prompt goes out twice."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.engine import repeating
from tests.repeating.repeats import ID, ask, claimed, replayed, reply, turn_of
from tests.turns.reading import held, said, submissions
from tests.twin import Hang

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ends.conftest import SetClock
    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no repeat wait for what another process is at."""
    monkeypatch.setattr(repeating, "PENDING_S", 0.0)


async def test_a_start_that_is_repeated_is_answered_with_its_turn_and_sends_nothing(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    first = await ask(bridge, "SAY:once", project)
    again = await ask(bridge, "SAY:once", project, wait_seconds=5)

    assert (replayed(first), replayed(again)) == (False, True)
    assert (again.status, again.is_error, "once" in again.text) == ("completed", False, True)
    assert turn_of(first) == turn_of(again)
    assert submissions(twin) == ["SAY:once"]
    expires = [answer.structured["request"]["expiresAt"] for answer in (first, again)]
    assert expires[0] == expires[1]
    left = datetime.fromisoformat(expires[0]) - datetime.now(UTC)
    assert timedelta(hours=23, minutes=55) < left <= timedelta(hours=24)


async def test_a_reply_that_is_repeated_under_any_of_the_ids_names_sends_nothing(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = (await bridge.start("SAY:one", project)).session_id
    first = await reply(bridge, session_id, "SAY:two")
    again = [
        await bridge.call_exactly(
            "opencode-reply",
            {name: session_id, "prompt": "SAY:two", "request-id": ID, "model": None},
        )
        for name in ("sessionId", "threadId", "conversationId")
    ]
    assert [replayed(answer) for answer in (first, *again)] == [False, True, True, True]
    assert {turn_of(answer) for answer in (first, *again)} == {turn_of(first)}
    assert submissions(twin) == said(twin, session_id) == ["SAY:one", "SAY:two"]


async def test_without_a_request_id_nothing_is_said_of_one(bridge: Bridge, project: Path) -> None:
    assert "request" not in (await bridge.start("SAY:x", project)).structured


async def test_a_repeat_of_a_turn_that_runs_watches_it_for_its_own_time(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    with held(twin):
        first = await ask(bridge, "SAY:told", project, wait_seconds=0)
        running_still = await ask(bridge, "SAY:told", project, wait_seconds=0)
    over = await ask(bridge, "SAY:told", project, wait_seconds=30)

    assert [answer.status for answer in (first, running_still)] == ["running", "running"]
    assert (over.status, "told" in over.text, replayed(over)) == ("completed", True, True)
    assert len(submissions(twin)) == 1


async def test_identical_calls_at_once_are_one_prompt_and_get_one_turn(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    answers = await asyncio.gather(*(ask(bridge, "SAY:once", project) for _ in range(6)))

    assert sorted(replayed(answer) for answer in answers) == [False] + [True] * 5
    assert {answer.status for answer in answers} == {"completed"}
    assert len({turn_of(answer) for answer in answers}) == 1
    assert submissions(twin) == ["SAY:once"]
    assert twin.lines().count("POST /session") == 1


@pytest.mark.usefixtures("impatient")
async def test_a_repeat_waits_for_a_first_call_that_has_begun_no_turn_yet(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    """In one process as long as it takes: what is pending there is not a matter of time."""
    held = twin.fail(Hang(), method="POST", path=r"^/session$")
    first = asyncio.create_task(ask(bridge, "SAY:once", project))
    await held.reached.wait()
    claim = await claimed(bridges)
    again = asyncio.create_task(ask(bridge, "SAY:once", project))
    await claimed(bridges, but=claim)
    assert not again.done()
    held.release()

    assert [replayed(await call) for call in (first, again)] == [False, True]
    assert (await again).status == "completed"
    assert submissions(twin) == ["SAY:once"]


@pytest.mark.parametrize(
    "other",
    [
        {"prompt": "SAY:other"},
        {"model": "scripted/one"},
        {"agent": "build"},
        {"title": "A title"},
        {"timeout_seconds": 60},
        {"sandbox": "read-only"},
        {"developer_instructions": "Be brief."},
    ],
    ids=lambda other: next(iter(other)),
)
async def test_other_arguments_under_the_same_id_are_a_conflict_and_send_nothing(
    bridge: Bridge, twin: Twin, project: Path, other: dict[str, object]
) -> None:
    first = await ask(bridge, "SAY:secret", project)
    since = len(twin.requests)
    refused = await bridge.call(
        "opencode", **{"prompt": "SAY:secret", "cwd": str(project), "request_id": ID, **other}
    )
    assert (refused.error, refused.is_error) == ("REQUEST_ID_CONFLICT", True)
    assert refused.structured["resendSafety"] == "not_submitted"
    assert (replayed(refused), ID in refused.text) == (False, True)
    assert "secret" not in refused.text
    assert refused.session_id == first.session_id
    assert twin.lines(since) == []
    assert replayed(await ask(bridge, "SAY:secret", project))


async def test_the_same_id_for_another_tool_is_a_conflict(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = (await ask(bridge, "SAY:x", project)).session_id
    assert (await reply(bridge, session_id, "SAY:x")).error == "REQUEST_ID_CONFLICT"
    assert submissions(twin) == ["SAY:x"]


async def test_a_repeat_of_an_older_turn_gets_that_turns_own_end(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    first = await ask(bridge, "SAY:one", project)
    await bridge.call("opencode-reply", sessionId=first.session_id, prompt="SAY:two")
    again = await ask(bridge, "SAY:one", project)

    assert turn_of(again) == turn_of(first)
    assert (again.status, again.structured["turn"], replayed(again)) == ("completed", 1, True)
    assert ("one" in again.text, "two" in again.text) == (True, False)
    assert submissions(twin) == ["SAY:one", "SAY:two"]


@pytest.mark.parametrize("hours", [24, 25])
async def test_a_request_id_expires_after_24_hours(
    bridge: Bridge, twin: Twin, project: Path, set_clock: SetClock, hours: int
) -> None:
    first = await ask(bridge, "SAY:x", project)
    set_clock.by(23)
    assert turn_of(await ask(bridge, "SAY:x", project)) == turn_of(first)
    set_clock.by(hours)
    anew = await ask(bridge, "SAY:y", project)

    assert (anew.status, replayed(anew)) == ("completed", False)
    assert anew.session_id != first.session_id
    assert submissions(twin) == ["SAY:x", "SAY:y"]


async def test_a_repeat_after_a_restart_joins_the_turn_that_ran_on(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    one = await bridges.attached(ON_EXIT="keep")
    with held(twin):
        first = await ask(one, "SAY:told", project, wait_seconds=0)
        await one.close()
        two = await bridges.attached()
    again = await ask(two, "SAY:told", project, wait_seconds=30)

    assert turn_of(again) == turn_of(first)
    assert (again.status, "told" in again.text, replayed(again)) == ("completed", True, True)
    assert len(submissions(twin)) == 1


async def test_a_folder_that_is_gone_does_not_hide_the_answer_of_the_first_call(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """What a first call checks is no matter to a repeat: it sends nothing."""
    first = await ask(bridge, "SAY:x", project)
    project.rmdir()
    again = await ask(bridge, "SAY:x", project)

    assert (again.status, turn_of(again)) == ("completed", turn_of(first))
    assert submissions(twin) == ["SAY:x"]

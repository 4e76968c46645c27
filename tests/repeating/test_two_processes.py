"""The same call at two servers on one database, and at one whose first call cannot go on."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from opencode_mcp.engine import repeating
from tests.repeating.repeats import ID, ask, change, claimed, replayed, row_of, turn_of
from tests.support.victim import Errand, Victim, run
from tests.turns.cancels import ENDLESS
from tests.turns.reading import held, streaming, submissions
from tests.twin import Hang

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support.bridges import Bridges
    from tests.twin import Twin


async def test_identical_calls_at_two_servers_at_once_are_one_prompt(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    servers = [await bridges.attached(), await bridges.attached()]
    calls = [ask(server, "SAY:once", project) for server in servers * 3]
    answers = await asyncio.gather(*calls)

    assert sorted(replayed(answer) for answer in answers) == [False] + [True] * 5
    assert {answer.status for answer in answers} == {"completed"}
    assert len({turn_of(answer) for answer in answers}) == 1
    assert submissions(twin) == ["SAY:once"]


async def test_identical_calls_of_two_processes_at_once_are_one_prompt(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    errand = Errand(
        env=bridges.attach_env(),
        folder=project,
        job="call",
        arguments={"prompt": "SAY:once", "cwd": str(project), "request-id": ID},
    )
    reports = await asyncio.gather(run(errand), run(errand))
    told = [json.loads(report.answers[0]) for report in reports]

    assert [one["status"] for one in told] == ["completed"] * 2
    assert sorted(one["request"]["replayed"] for one in told) == [False, True]
    assert len({one["turnId"] for one in told}) == 1
    assert submissions(twin) == ["SAY:once"]


async def test_a_turn_that_another_process_keeps_is_watched_to_its_end(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    one, two = await bridges.attached(), await bridges.attached()
    with held(twin):
        first = await ask(one, "SAY:told", project, wait_seconds=0)
        watching = asyncio.create_task(ask(two, "SAY:told", project, wait_seconds=30))
        await asyncio.wait({watching}, timeout=0.3)
        assert not watching.done(), "it does not answer before the turn is over"
    again = await watching

    assert turn_of(again) == turn_of(first)
    assert (again.status, "told" in again.text, replayed(again)) == ("completed", True, True)
    assert len(submissions(twin)) == 1


async def test_a_first_call_that_begins_no_turn_in_time_is_pending_at_another_process(
    bridges: Bridges, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeating, "PENDING_S", 0.3)
    one, two = await bridges.attached(), await bridges.attached()
    held = twin.fail(Hang(), method="POST", path=r"^/session$")
    first = asyncio.create_task(ask(one, "SAY:once", project))
    await held.reached.wait()
    pending = await ask(two, "SAY:once", project)
    other = await ask(two, "SAY:other", project)
    held.release()
    answer = await first
    again = await ask(two, "SAY:once", project)

    assert (pending.error, pending.structured["error"]["retryable"]) == ("REQUEST_PENDING", True)
    assert (pending.structured["resendSafety"], ID in pending.text) == ("unknown", True)
    assert other.error == "REQUEST_ID_CONFLICT"
    assert (answer.status, again.status) == ("completed", "completed")
    assert turn_of(again) == turn_of(answer)
    assert submissions(twin) == ["SAY:once"]


async def test_a_repeat_at_another_process_waits_for_the_turn_to_begin(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    one, two = await bridges.attached(), await bridges.attached()
    held = twin.fail(Hang(), method="POST", path=r"^/session$")
    first = asyncio.create_task(ask(one, "SAY:once", project))
    await held.reached.wait()
    claim = await claimed(bridges)
    again = asyncio.create_task(ask(two, "SAY:once", project))
    await claimed(bridges, but=claim)
    held.release()

    assert turn_of(await again) == turn_of(await first)
    assert [replayed(await call) for call in (first, again)] == [False, True]
    assert submissions(twin) == ["SAY:once"]


async def test_a_first_call_that_another_process_gave_up_is_made_by_the_repeat(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """Killed before its turn was written down: it sent nothing, and never will."""
    held = twin.fail(Hang(), method="POST", path=r"^/session$", times=1)
    arguments = {"prompt": "SAY:once", "cwd": str(project), "request-id": ID}
    victim = Victim(
        Errand(env=bridges.attach_env(), folder=project, job="call", arguments=arguments)
    )
    await held.reached.wait()
    server = await bridges.attached()
    again = asyncio.create_task(ask(server, "SAY:once", project))
    await claimed(bridges, but=row_of(bridges))
    assert not again.done()
    await victim.kill()
    answer = await again

    assert (answer.status, replayed(answer)) == ("completed", False)
    assert submissions(twin) == ["SAY:once"]


async def test_a_dead_processs_claim_without_a_turn_is_free_for_other_arguments(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    held = twin.fail(Hang(), method="POST", path=r"^/session$", times=1)
    arguments = {"prompt": "SAY:once", "cwd": str(project), "request-id": ID}
    victim = Victim(
        Errand(env=bridges.attach_env(), folder=project, job="call", arguments=arguments)
    )
    await held.reached.wait()
    await victim.kill()
    answer = await ask(await bridges.attached(), "SAY:other", project)

    assert (answer.status, replayed(answer)) == ("completed", False)
    assert submissions(twin) == ["SAY:other"]


async def test_a_call_whose_claim_was_taken_over_sends_nothing(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """Whoever holds a process for dead that is not: the claim is its fence."""
    one = await bridges.attached()
    held = twin.fail(Hang(), method="POST", path=r"^/session$", times=1)
    first = asyncio.create_task(ask(one, "SAY:once", project))
    await held.reached.wait()
    await claimed(bridges)
    await change(bridges, "UPDATE requests SET holder = 'nobody'")
    two = await bridges.attached()
    taken = await ask(two, "SAY:once", project)
    held.release()
    late = await first

    assert (taken.status, replayed(taken)) == ("completed", False)
    assert (late.error, late.is_error) == ("REQUEST_PENDING", True)
    assert submissions(twin) == ["SAY:once"]
    assert turn_of(await ask(one, "SAY:once", project)) == turn_of(taken)


async def test_a_process_that_was_killed_with_its_turn_at_work_is_joined_by_the_repeat(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    arguments = {"prompt": ENDLESS, "cwd": str(project), "request-id": ID}
    errand = Errand(env=bridges.attach_env(), folder=project, job="call", arguments=arguments)
    victim = Victim(errand)
    await streaming(twin)
    await victim.kill()
    again = json.loads(
        (await run(replace(errand, arguments={**arguments, "wait-seconds": 0}))).answers[0]
    )
    assert (again["status"], again["request"]["replayed"]) == ("running", True)
    assert submissions(twin) == [ENDLESS]

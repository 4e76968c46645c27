"""A call repeated with its request-id, on the real OpenCode: across our restart and our death."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest

from tests.real.support.processes import all_gone, opencode_servers_of_home
from tests.real.support.scripts import ENDLESS
from tests.repeating.repeats import ID, ask, claimed, replayed, reply, turn_of
from tests.support.victim import Errand, Victim

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.bridges import RealBridges
    from tests.real.support.sandbox import Sandbox
    from tests.real.support.witness import Witness

#: some seconds, so that it is at work when its server goes, and ends while the test watches
SLOW = "SLOW:20,5"


async def test_after_a_restart_the_repeat_joins_the_turn_that_ran_on(
    bridges: RealBridges, witness: Witness, project: Path
) -> None:
    one = await bridges.attached_process(ON_EXIT="keep")
    first = await ask(one, SLOW, project, wait_seconds=0)
    await witness.streaming(first.session_id)
    await one.close()
    await one.dead()
    two = await bridges.attached_process()
    again = await ask(two, SLOW, project, wait_seconds=60)

    assert (again.status, turn_of(again)) == ("completed", turn_of(first))
    assert (replayed(first), replayed(again)) == (False, True)
    assert await witness.user_texts(first.session_id) == [SLOW]
    assert len(await witness.sessions(project)) == 1


async def test_after_our_process_was_killed_the_repeat_joins_the_reply_that_it_had_sent(
    bridges: RealBridges, witness: Witness, project: Path
) -> None:
    """The answer of the first call is lost with its process."""
    one = await bridges.attached_process()
    session_id = (await one.start("SAY:one", project)).session_id
    lost = asyncio.create_task(reply(one, session_id, SLOW))
    await witness.streaming(session_id)
    one.signal(signal.SIGKILL)
    await one.dead()
    lost.cancel()
    await asyncio.wait({lost})
    two = await bridges.attached_process()
    again = await reply(two, session_id, SLOW, wait_seconds=60)

    assert (again.status, again.structured["turn"], replayed(again)) == ("completed", 2, True)
    assert await witness.user_texts(session_id) == ["SAY:one", SLOW]


@pytest.mark.parametrize(
    ("at", "sends"),
    [("after POST /session", True), ("before POST /session/", False)],
    ids=["before-the-prompt", "with-the-prompt"],
)
async def test_killed_around_the_prompt_the_repeat_sends_it_at_most_once(
    bridges: RealBridges, witness: Witness, project: Path, at: str, *, sends: bool
) -> None:
    """Every point is tried on the twin (tests/repeating/test_crash_points.py)."""
    arguments = {"prompt": "SAY:once", "cwd": str(project), "request-id": ID}
    env = bridges.attach_env()
    victim = Victim(
        Errand(env=env, folder=project, job="call", arguments=arguments, kill_at_step=at)
    )
    assert (await victim.finished()).was_killed
    again = await ask(await bridges.attached(), "SAY:once", project, wait_seconds=60)

    assert replayed(again) is not sends
    assert again.status == ("completed" if sends else "failed")
    assert await witness.user_texts(again.session_id) == (["SAY:once"] if sends else [])


async def test_when_the_managed_opencode_is_gone_with_us_the_repeat_tells_of_the_lost_turn(
    bridges: RealBridges, sandbox: Sandbox, project: Path
) -> None:
    """Nothing resumes (facts 9.1): it is over, and is not run again unasked.

    Its supervisor disposes OpenCode before it stops it, so an abort may be told of or not.
    """
    one = await bridges.managed_process(sandbox)
    first = await ask(one, ENDLESS, project, wait_seconds=0)
    await claimed(bridges)
    one.signal(signal.SIGKILL)
    await one.dead()
    await all_gone(sandbox.home)  # or the next process joins it, and the turn runs on (below)
    two = await bridges.managed(sandbox)
    again = await ask(two, ENDLESS, project, wait_seconds=40)

    assert turn_of(again) == turn_of(first)
    assert replayed(again)
    assert again.status in {"failed", "cancelled"}, again.text
    assert again.error in {"TURN_INCOMPLETE", None}
    assert (await two.status(first.session_id)).structured["turn"] == 1


async def test_while_another_process_keeps_the_managed_opencode_the_repeat_joins_what_runs_on(
    bridges: RealBridges, sandbox: Sandbox, project: Path
) -> None:
    one, other = await bridges.managed_process(sandbox), await bridges.managed(sandbox)
    await other.start("SAY:here", project)
    first = await ask(one, ENDLESS, project, wait_seconds=0)
    one.signal(signal.SIGKILL)
    await one.dead()
    again = await ask(other, ENDLESS, project, wait_seconds=1)

    assert (again.status, turn_of(again), replayed(again)) == ("running", turn_of(first), True)
    assert len(opencode_servers_of_home(sandbox.home)) == 1

"""Our process is killed in the middle of an end on the real OpenCode; the next one finishes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.real.support.scripts import ENDLESS, bash, subagent
from tests.support.polling import eventually
from tests.support.victim import Errand, Victim, run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.bridges import RealBridges
    from tests.real.support.processes import Marker
    from tests.real.support.witness import Witness


@pytest.mark.parametrize("at", ["before POST", "after POST", "before DELETE", "after DELETE"])
async def test_an_end_whose_process_was_killed_is_finished_by_the_next_one(
    bridges: RealBridges, witness: Witness, asking: Path, marker: Marker, at: str
) -> None:
    """Issue 3; every point of it is tried on the twin (tests/ends/test_crash_points.py)."""
    prompts = (ENDLESS, subagent(bash(marker.command)))
    start = Errand(env=bridges.attach_env(), folder=asking, job="start", prompts=prompts)
    starter = Victim(start)
    streaming, waiting = [await starter.answer() for _ in prompts]
    await witness.streaming(streaming)

    async def waits() -> bool:
        return bool(await witness.permissions(asking))

    await eventually(waits, what="the sub-agent waits")
    (child,) = [one["id"] for one in await witness.children(waiting)]
    await starter.kill()
    end = replace(start, job="end", session_ids=(streaming, waiting), kill_at_step=at)
    assert (await run(end)).was_killed
    assert (await run(replace(end, job="carry on", kill_at_step=""))).exit_code == 0
    await witness.ended(streaming, asking)
    await witness.ended(waiting, asking, tree=(child,), marker=marker)

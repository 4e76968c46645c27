"""Kill the process at every numbered step of an end; the next one carries it on.

Exactly one end, the right action, nothing pending, nothing tracked, no other session touched. Where
the crash came before the end was written down, it was never accepted, and the session is as it was.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.records import EndAction
from tests.ends.scene import set_scene
from tests.support.victim import run
from tests.twin import Twin

if TYPE_CHECKING:
    from pathlib import Path

#: the points of one action are spread over so many tests, for several workers
_SHARES = 3
#: an end commits: accepted, lease and attempt, delete sent, forgotten
_COMMITS = {EndAction.DELETE: 4, EndAction.ARCHIVE: 3}


@pytest.mark.parametrize("action", EndAction)
async def test_the_points_are_all_requests_and_commits_of_an_end(
    tmp_path: Path, action: EndAction
) -> None:
    async with AsyncExitStack() as stack:
        twin = await stack.enter_async_context(Twin(tmp_path))
        scene = await set_scene(stack, twin, tmp_path, action)
        report = await run(scene.errand)
        assert (report.exit_code, report.answers) == (0, ("ended",))
        scene.check_ended(action)
        scene.check_others_untouched()
        assert scene.foreigner in twin.runs.running
        arrived = twin.lines(scene.since)
        begun = [step for step in report.steps if step.startswith("before")]
        assert sorted(begun) == sorted(f"before {line}" for line in arrived)
        commits = report.steps.count("after a commit")
        assert commits == _COMMITS[action]
        assert len(report.steps) == 2 * len(arrived) + commits


@pytest.mark.parametrize("share", range(_SHARES))
@pytest.mark.parametrize("action", EndAction)
async def test_killed_at_any_point_the_next_process_ends_the_session(
    tmp_path: Path, action: EndAction, share: int
) -> None:
    point = share + 1
    while True:
        folder = tmp_path / str(point)
        folder.mkdir()
        async with AsyncExitStack() as stack:
            twin = await stack.enter_async_context(Twin(folder))
            scene = await set_scene(stack, twin, folder, action)
            report = await run(replace(scene.errand, kill_at=point))
            if not report.was_killed:
                break
            where = f"point {point}: {report.steps[-1]}"
            next_one = await run(scene.carry_on())
            assert next_one.exit_code == 0, where
            if "after a commit" in report.steps:
                scene.check_ended(action)
            else:
                assert scene.session_id in twin.runs.running, where
            scene.check_others_untouched()
            assert scene.foreigner in twin.runs.running
        point += _SHARES
    assert point > 20

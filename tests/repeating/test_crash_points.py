"""Kill the process at every numbered step of a first call; the next process repeats the call.

One prompt at most, whatever the point: where none was sent, the repeat sends it; where one may have
been sent, the repeat tells of that turn. A step is a request (before it, and after its answer came)
or a commit.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pytest

from tests.repeating.repeats import ID
from tests.support.bridges import Bridges
from tests.support.victim import Errand, run
from tests.turns.reading import submissions
from tests.twin import Twin

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests.support.victim import Report

#: the points are spread over so many tests, for several workers
_SHARES = 3
_PROMPT = "SAY:once"


@dataclass(frozen=True)
class Scene:
    """A twin, and the call that is made, killed and repeated."""

    twin: Twin
    errand: Errand
    #: prompts of before
    before: int

    def sent(self) -> int:
        """Return how often the prompt was sent."""
        return len(submissions(self.twin)) - self.before


async def set_scene(stack: AsyncExitStack, folder: Path, tool: Literal["start", "reply"]) -> Scene:
    folder.mkdir()
    twin = await stack.enter_async_context(Twin(folder, model_speed=20))
    twin.pace.resolving_s = 0.0
    bridges = Bridges(stack, folder, twin, folder)
    errand = Errand(env=bridges.attach_env(), folder=folder, job="call")
    arguments: Json = {"prompt": _PROMPT, "request-id": ID, "wait-seconds": 20}
    if tool == "start":
        return Scene(twin, replace(errand, arguments={**arguments, "cwd": str(folder)}), 0)
    bridge = await bridges.attached()
    arguments["sessionId"] = (await bridge.start("SAY:before", folder)).session_id
    await bridge.close()
    return Scene(twin, replace(errand, arguments=arguments), 1)


def told(report: Report) -> Json:
    """Return what the call was answered."""
    (answer,) = report.answers
    found: Json = json.loads(answer)
    return found


@pytest.mark.parametrize("tool", ["start", "reply"])
async def test_the_claim_and_its_turn_are_committed_before_the_prompt_is_sent(
    tmp_path: Path, tool: Literal["start", "reply"]
) -> None:
    async with AsyncExitStack() as stack:
        scene = await set_scene(stack, tmp_path / "scene", tool)
        report = await run(scene.errand)
        assert told(report)["status"] == "completed"
        prompt = next(i for i, step in enumerate(report.steps) if step.endswith("/prompt_async"))
        # the claim and the turn; a start writes itself down in between, and its instance before
        commits = report.steps[:prompt].count("after a commit")
        assert commits == {"start": 4, "reply": 2}[tool]


@pytest.mark.parametrize("share", range(_SHARES))
@pytest.mark.parametrize("tool", ["start", "reply"])
async def test_killed_at_any_point_the_repeat_sends_no_second_prompt(
    tmp_path: Path, tool: Literal["start", "reply"], share: int
) -> None:
    point = share + 1
    seen: set[bool] = set()
    while True:
        async with AsyncExitStack() as stack:
            scene = await set_scene(stack, tmp_path / str(point), tool)
            first = await run(replace(scene.errand, kill_at=point))
            if not first.was_killed:
                break
            where = f"point {point}: {first.steps[-1]}"
            sent = scene.sent()
            again = told(await run(scene.errand))
            seen.add(again["request"]["replayed"])
            assert scene.sent() <= 1, where
            if again["request"]["replayed"]:  # its turn was written down: it may have been sent
                assert again["status"] in {"completed", "failed"}, where
                assert sent == scene.sent(), where
            else:
                assert (again["status"], sent, scene.sent()) == ("completed", 0, 1), where
        point += _SHARES
    assert seen == {True, False}

"""Every fault at every request of an end: it is told truly, and finished in any case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.ends.scene import Scene, begin_foreign, waits
from tests.real.support.sandbox import write_project
from tests.real.support.scripts import bash, subagent
from tests.support.polling import eventually
from tests.support.victim import Errand
from tests.twin import Body, Drip, DropStreams, Hang, Refuse, Reset, Restart, Status, Truncate
from tests.worker import ASK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Answer, Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Planned, Twin
    from tests.twin.faults import Fault

FAULTS: dict[str, Fault] = {
    "reset": Reset(),
    "answer lost": Reset(after=True),
    "hang": Hang(),
    "hang, done": Hang(after=True),
    "500": Status(500),
    "502, done": Status(502, after=True),
    "503": Status(503),
    "429": Status(429, retry_after="0"),
    "401": Status(401),
    "400": Status(400),
    "page": Body(b"<!doctype html>", "text/html"),
    "no JSON": Body(b"{"),
    "another JSON": Body(b'{"healthy":true}'),
    "truncated": Truncate(),
    "drip": Drip(0.002),
    "streams dropped": DropStreams(),
    "network gone": Refuse(),
    "restart": Restart(),
    "restart, done": Restart(after=True),
}


#: those played with a sub-agent too, whose end takes twice the requests
_DEEP = ("answer lost", "hang", "503", "restart, done")


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        *((name, bash("echo hi")) for name in FAULTS),
        *((name, subagent(bash("echo hi"))) for name in _DEEP),
    ],
    ids=[*FAULTS, *(f"{name}, deep" for name in _DEEP)],
)
async def test_an_end_survives_the_fault_at_each_of_its_requests(
    twin: Twin, bridges: Bridges, tmp_path: Path, name: str, prompt: str
) -> None:
    project = write_project(tmp_path / "asking", ASK).resolve()
    takes_all = isinstance(FAULTS[name], Hang | Refuse)  # what time there is
    bridge = await bridges.attached(
        REQUEST_TIMEOUT_SECONDS="1" if takes_all else "10",
        CLEANUP_TIMEOUT_SECONDS="1" if takes_all else "3",
    )
    bystander = (await bridge.start("SAY:x", project)).session_id
    foreigner = await begin_foreign(twin, project)
    point = 0
    while True:
        point += 1
        session_id = await bridge.begin(prompt, project, approval_policy="caller")
        await waits(twin, project)
        errand = Errand(env={}, folder=project, job="end")
        since = len(twin.requests)
        scene = Scene(twin, bridges.database, errand, session_id, bystander, foreigner, since)
        planned = twin.fail(FAULTS[name], nth=point)
        await _end(bridge, scene, planned)
        if not planned.hits:
            break
    assert point > 15


async def _end(bridge: Bridge, scene: Scene, planned: Planned) -> None:
    answer = await bridge.end(scene.session_id)
    _check_told_truly(scene, answer)
    planned.release()
    await scene.twin.listen()

    async def over() -> bool:
        return not scene.rows("SELECT 1 FROM sessions WHERE phase = 'ending'")

    await eventually(over, what=f"the end is finished after {planned}")
    scene.check_ended("delete")
    scene.check_others_untouched()
    assert (await bridge.end(scene.session_id)).status == "not_found"


def _check_told_truly(scene: Scene, answer: Answer) -> None:
    """Contract §2.3: `ended` is said of nothing that is there, and all else names what is next."""
    if answer.status == "ended":
        assert not answer.is_error
        scene.check_ended("delete")
        return
    assert (answer.status, answer.is_error) == ("ending", True), answer.text
    assert answer.structured["accepted"] is True
    assert answer.structured["done"] is False
    assert scene.session_id in answer.text

"""Sessions that a session's sub-agents, or other clients, made below it end with it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.ends.scene import waits
from tests.real.support.sandbox import write_project
from tests.real.support.scripts import bash
from tests.support.polling import eventually
from tests.twin import Hang
from tests.worker import ASK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin

#: the requests of an end at whose moment something new appears below the session
MOMENTS = {
    "first look": ("GET", r"/children$", 1),
    "abort": ("POST", r"/abort$", 1),
    "second look": ("GET", r"/children$", 2),
    "last look": ("GET", r"/children$", 3),
}


def begin_below(twin: Twin, parent: str, project: Path, prompt: str) -> str:
    """Do as a client does that makes a session below another one and prompts it."""
    child = twin.world.create(str(project), {"parentID": parent})
    twin.runs.submit(child, {"parts": [{"type": "text", "text": prompt}]}, f"msg_{child['id']}")
    return str(child["id"])


@pytest.mark.parametrize("action", ["delete", "archive"])
@pytest.mark.parametrize("moment", MOMENTS)
async def test_what_appears_below_a_session_while_it_ends_is_ended_too(
    bridge: Bridge, twin: Twin, tmp_path: Path, moment: str, action: str
) -> None:
    project = write_project(tmp_path / "asking", ASK).resolve()
    session_id = (await bridge.start("SAY:x", project)).session_id
    method, path, nth = MOMENTS[moment]
    planned = twin.fail(Hang(), method=method, path=path, nth=nth)
    ending = asyncio.create_task(bridge.end(session_id, action=action))
    await planned.reached.wait()
    child = begin_below(twin, session_id, project, bash("echo hi"))
    await waits(twin, project)
    grandchild = begin_below(twin, child, project, "HANG")

    async def runs() -> bool:
        return grandchild in twin.runs.running

    await eventually(runs, what="the grandchild runs")
    planned.release()
    answer = await ending
    assert answer.status == "ended", answer.text
    assert answer.structured["endedSubsessions"] == 2
    assert not twin.runs.running
    assert not twin.asks.of("permission", str(project))
    left = twin.world.sessions
    if action == "delete":
        assert not left
    else:
        assert {i for i, one in left.items() if "archived" in one["time"]} == {
            session_id,
            child,
            grandchild,
        }


async def test_a_child_that_outlives_the_delete_of_its_parent_is_deleted_by_itself(
    bridge: Bridge, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: that the delete cascades (facts 7.6) is read back, not believed."""
    session_id = (await bridge.start("SAY:x", project)).session_id
    twin.world.create(str(project), {"parentID": session_id})

    async def delete_it_alone(one: str) -> None:
        twin.world.sessions.pop(one)

    monkeypatch.setattr(twin.runs, "delete", delete_it_alone)
    ended = await bridge.end(session_id)
    assert ended.status == "ended", ended.text
    assert not twin.world.sessions


async def test_a_delete_that_did_nothing_is_no_end(
    bridges: Bridges, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge = await bridges.attached(CLEANUP_TIMEOUT_SECONDS="1")
    session_id = (await bridge.start("SAY:x", project)).session_id

    async def delete_nothing(one: str) -> None:
        del one

    with monkeypatch.context() as patched:
        patched.setattr(twin.runs, "delete", delete_nothing)
        ended = await bridge.end(session_id)
        assert (ended.status, ended.error) == ("ending", "CLEANUP_UNCONFIRMED")
        assert "still has session" in ended.text

    async def is_ended() -> bool:
        return await bridge.is_ended(session_id)

    await eventually(is_ended, what="it is finished once the delete works")
    assert not twin.world.sessions

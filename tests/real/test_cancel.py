"""`opencode-cancel` on the real OpenCode: whatever a turn is doing is stopped, and proven so.

The interleavings are played on the twin (tests/turns/test_cancel.py).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.real.support import situations
from tests.real.support.scripts import bash
from tests.real.support.situations import Scene
from tests.support.polling import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.processes import Marker
    from tests.real.support.witness import Witness
    from tests.support.bridge import Answer, Bridge

#: longer than OpenCode needs for a command that ignores signals (3 s: facts 4.2)
_WAIT_MS = 20_000


@pytest.fixture
def scene(bridge: Bridge, witness: Witness, asking: Path, project: Path, marker: Marker) -> Scene:
    """Put the actors together."""
    return Scene(bridge, witness, asking, project, marker)


async def cancel(bridge: Bridge, session_id: str) -> Answer:
    return await bridge.call("opencode-cancel", sessionId=session_id, wait_ms=_WAIT_MS)


@pytest.mark.parametrize(
    "situation",
    [
        pytest.param("streaming", id="text-stream"),
        pytest.param("shell_command", id="shell-command"),
        pytest.param("waiting_permission", id="pending-permission"),
        pytest.param("waiting_question", id="pending-question"),
        pytest.param("just_prompted", id="just-submitted"),
        pytest.param("asking_subagent", id="asking-sub-agent"),
        pytest.param("streaming_subagent", id="streaming-sub-agent"),
        pytest.param("retrying_provider", id="provider-back-off"),
    ],
)
async def test_a_running_turn_is_stopped_and_proven_over(scene: Scene, situation: str) -> None:
    reached = await getattr(situations, situation)(scene)
    answer = await cancel(scene.bridge, reached.session_id)

    said = answer.structured
    assert (answer.status, answer.is_error) == ("cancelled", False), answer.text
    assert (said["accepted"], said["done"], said["alreadyDone"]) == (True, True, False)
    assert (said["cancelled"], said["executionState"]) == (True, "stopped")
    assert not {call["status"] for call in said.get("toolCalls", [])} & {"running", "pending"}
    left = await scene.witness.leftovers(
        reached.session_id, reached.folder, reached.tree, scene.marker
    )
    assert not left
    reply = await scene.bridge.call(
        "opencode-reply", sessionId=reached.session_id, prompt="SAY:alive"
    )
    assert (reply.status, "alive" in reply.text) == ("completed", True)


async def test_a_command_that_ignores_signals_is_not_called_gone_before_it_is(
    bridge: Bridge, project: Path, tmp_path: Path
) -> None:
    """Case B01: its heartbeat ends, or the answer says that it may live on; here both."""
    beat = tmp_path / "beat"
    loop = f"trap '' TERM INT HUP; while :; do echo . >> {beat}; sleep 0.2; done"
    session_id = await bridge.begin(bash(loop), project)

    async def beats() -> bool:
        return beat.exists()

    await eventually(beats, what="the command runs")
    answer = await cancel(bridge, session_id)
    assert answer.structured["cancelled"] is True
    assert "PROCESS_MAY_LIVE" in {one["code"] for one in answer.structured["warnings"]}

    async def silent() -> bool:
        size = beat.stat().st_size
        await asyncio.sleep(1)
        return beat.stat().st_size == size

    await eventually(silent, within_s=13, what="the command is gone")
    assert (await bridge.status(session_id)).status == "cancelled"


async def test_a_turn_that_is_over_is_not_called_cancelled(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    """Case B03: OpenCode answers true to an abort of an idle session."""
    done = await bridge.start("SAY:the answer", project)
    before = await witness.messages(done.session_id)
    answer = await cancel(bridge, done.session_id)
    assert answer.status == "completed"
    assert answer.structured["alreadyDone"] is True
    assert answer.structured["accepted"] is False
    assert await witness.messages(done.session_id) == before

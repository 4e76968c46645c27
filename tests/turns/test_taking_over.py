"""A server goes on with what another one left running, whatever it is asked first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.real.support.sandbox import write_project
from tests.real.support.scripts import bash
from tests.twin import Hang
from tests.worker import ASK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridges import Bridges
    from tests.twin import Twin


async def test_an_ask_of_a_turn_that_was_left_running_is_answered_by_the_next_servers_first_call(
    bridges: Bridges, twin: Twin, tmp_path: Path
) -> None:
    """Two look at the turn then, the call and the finisher, and the later one must not be blind."""
    asking = write_project(tmp_path / "asking", ASK)
    first = await bridges.attached(ON_EXIT="keep")
    prompt = f"{bash('echo hi')}\nTHEN\nSAY:said it"
    told = await first.start(prompt, asking, approval_policy="caller")
    (ask,) = told.structured["pendingApprovals"]
    await first.close()
    second = await bridges.attached()
    # the call finds nobody at the turn; while it reads, the finisher takes the turn up
    read = twin.fail(Hang(), method="GET", path="^/session/status")
    answer = {"sessionId": told.session_id, "approvalId": ask["id"], "decision": "allow"}
    approving = asyncio.create_task(second.call("opencode-approve", **answer))
    await read.reached.wait()
    read.release()
    allowed = await approving

    assert allowed.error is None, allowed.text
    assert (await second.settled(told.session_id)).status == "completed"

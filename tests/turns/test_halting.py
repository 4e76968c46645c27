"""A turn called over without having been seen busy is guarded for a while (contract §2.2)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest_asyncio

from opencode_mcp.clock import Clock
from opencode_mcp.engine.approvals import Approvals
from opencode_mcp.engine.halting import Halt
from opencode_mcp.engine.observing import Observer
from opencode_mcp.opencode.client import Prompt
from opencode_mcp.records import ApprovalPolicy, InstanceKind, StopReason
from opencode_mcp.store.store import Store
from tests.store.make import a_session, a_turn
from tests.support.polling import eventually
from tests.turns.cancels import ENDLESS, aborts, eventually_quiet, running
from tests.twin import Hang

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from opencode_mcp.engine.instances import Connection
    from tests.twin import Twin

OURS, OTHERS = "msg_ours", "msg_of_somebody_else"


@pytest_asyncio.fixture
async def observer(
    connect: Callable[[InstanceKind], Connection], project: Path, tmp_path: Path
) -> AsyncIterator[Observer]:
    """Give the observer of a turn that was stopped, and that OpenCode has not begun yet."""
    connection = connect(InstanceKind.ATTACH)
    remote = await connection.client.create_session(str(project), title=None, metadata={})
    session = replace(a_session(remote.id), directory=str(project))
    turn = replace(a_turn(remote.id), message_id=OURS, stop_reason=StopReason.CANCEL)
    clock = Clock()
    async with Store.open(tmp_path / "tracking.db") as store:
        yield Observer(
            connection,
            session,
            turn,
            store=store,
            clock=clock,
            approvals=Approvals(ApprovalPolicy.CALLER, clock, 600),
        )


async def guard(observer: Observer, message_id: str, twin: Twin) -> None:
    """Guard the turn, and let a prompt begin meanwhile."""
    halt = Halt(observer, clock=Clock(), announce=lambda: None)
    guarding = asyncio.create_task(halt.guard())
    session_id = observer.session.id
    await observer.connection.client.prompt_async(session_id, Prompt(message_id, ENDLESS))
    if message_id == OURS:
        await eventually_aborted(twin, session_id)
        guarding.cancel()
    await asyncio.wait({guarding})


async def eventually_aborted(twin: Twin, session_id: str) -> None:
    async def aborted() -> bool:
        return aborts(twin) > 0

    await eventually(aborted, what="the turn that began is aborted")
    await eventually_quiet(twin, session_id)


async def test_a_turn_that_begins_after_it_was_called_over_is_aborted(
    observer: Observer, twin: Twin
) -> None:
    await guard(observer, OURS, twin)
    assert observer.session.id not in twin.runs.running


async def test_a_later_prompt_of_somebody_else_is_left_alone(
    observer: Observer, twin: Twin
) -> None:
    await guard(observer, OTHERS, twin)
    await running(twin, observer.session.id)
    assert aborts(twin) == 0


async def test_a_prompt_that_comes_while_a_turn_is_halted_is_left_alone(
    observer: Observer, twin: Twin
) -> None:
    """Ours: two processes may halt one turn; the slower one must not hit the next turn."""
    client, session_id = observer.connection.client, observer.session.id
    await client.prompt_async(session_id, Prompt(OURS, ENDLESS))
    await running(twin, session_id)
    looks = twin.fail(Hang(), method="GET", path=r"^/session/status$", times=None)
    halting = asyncio.create_task(Halt(observer, clock=Clock(), announce=lambda: None).carry_out())
    await looks.reached.wait()  # the abort was answered before
    await client.prompt_async(session_id, Prompt(OTHERS, ENDLESS))
    await running(twin, session_id)
    looks.release()
    await halting
    assert aborts(twin) == 1
    assert session_id in twin.runs.running

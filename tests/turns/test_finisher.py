"""The finisher on the twin: what was begun is carried on, whoever began it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.support.polling import eventually, steadily
from tests.turns.kills import killed_with_a_turn
from tests.turns.reading import streaming
from tests.twin import Hang, Status

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin

ENDLESS = "SLOW:100000,50"


async def quiet(twin: Twin) -> None:
    async def check() -> bool:
        return not twin.runs.running

    await eventually(check, what="nothing runs in OpenCode")


async def test_a_turn_past_its_deadline_is_stopped_by_the_next_process_though_nobody_calls(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    session_id = await killed_with_a_turn(bridges, twin, project)
    past = (datetime.now(UTC) - timedelta(minutes=1)).isoformat(timespec="microseconds")
    with closing(sqlite3.connect(bridges.database)) as file, file:
        file.execute("UPDATE turns SET deadline_at = ?", [past])
    second = await bridges.attached()
    await quiet(twin)
    answer = await second.status(session_id)
    assert (answer.status, answer.is_error) == ("timeout", True)


async def test_a_turn_of_a_dead_process_is_observed_on_and_owned(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """Attach: it still runs, so it is neither stopped nor lost; who took it up answers for it."""
    session_id = await killed_with_a_turn(bridges, twin, project)
    second = await bridges.attached()

    async def taken() -> bool:
        with closing(sqlite3.connect(bridges.database)) as file:
            rows = file.execute("SELECT DISTINCT holder FROM turns").fetchall()
        return len(rows) == 1 and rows != held

    with closing(sqlite3.connect(bridges.database)) as file:
        held = file.execute("SELECT DISTINCT holder FROM turns").fetchall()
    await eventually(taken, what="the turn has a new holder")
    assert (await second.status(session_id)).status == "running"
    assert session_id in twin.runs.running
    await second.close()
    await quiet(twin)


async def test_a_turn_of_another_live_process_is_left_alone(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """Ours: whoever merely looks at a turn does not stop it when it goes."""
    first = await bridges.attached()
    session_id = await first.begin(ENDLESS, project)
    await streaming(twin)
    second = await bridges.attached()
    assert (await second.status(session_id)).status == "running"
    await second.close()
    assert session_id in twin.runs.running
    assert (await first.status(session_id)).status == "running"


async def test_a_stop_is_carried_out_by_one_process_though_several_observe_the_turn(
    bridges: Bridges, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the slower one's abort could come so late that it hits the next turn."""
    monkeypatch.setattr("opencode_mcp.engine.finisher.ROUND_S", 0.05)
    first, second = await bridges.attached(), await bridges.attached()
    session_id = await first.begin(ENDLESS, project)
    await streaming(twin)
    assert (await second.status(session_id)).status == "running"
    aborting = twin.fail(Hang(), method="POST", path=r"/abort$", times=None)
    stopping = await first.call("opencode-cancel", sessionId=session_id, wait_ms=0)
    assert stopping.status == "stopping"

    async def sent_once() -> bool:
        return len(aborting.hits) == 1

    await steadily(sent_once, for_s=0.7, what="one abort is on its way")
    aborting.release()
    assert (await first.settled(session_id)).status == "cancelled"


async def test_a_cancel_by_another_process_is_told_by_the_one_that_runs_the_turn(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """OpenCode: an abort during a provider's back-off leaves no trace (facts 4.4)."""
    first, second = await bridges.attached(), await bridges.attached()
    twin.pace.retries_s = (60.0,)
    watching = asyncio.create_task(first.start("STATUS:503", project))

    async def retrying() -> bool:
        return any(run.status for run in twin.runs.running.values())

    await eventually(retrying, what="the provider is being retried")
    (session_id,) = twin.runs.running
    answer = await second.call("opencode-cancel", sessionId=session_id, wait_ms=10_000)
    assert answer.structured["cancelled"] is True, answer.text
    assert (await asyncio.wait_for(watching, 15)).status == "cancelled"


async def test_an_unconfirmed_end_finishes_by_itself_when_opencode_is_back(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Case 45: accepted is kept; status says why it is not done and when it is tried again."""
    session_id = await bridge.begin(ENDLESS, project)
    await streaming(twin)
    await twin.refuse()
    ended = await bridge.end(session_id)
    assert (ended.status, ended.error) == ("ending", "CLEANUP_UNCONFIRMED")
    pending = (await bridge.status(session_id)).structured["ending"]
    assert pending["lastError"]
    assert pending["nextTryAt"]
    await twin.listen()

    async def over() -> bool:
        return (await bridge.status(session_id)).error == "SESSION_NOT_FOUND"

    await eventually(over, what="the end is finished")
    assert not twin.runs.running
    assert session_id not in twin.world.sessions


async def test_an_end_of_a_dead_process_is_finished_though_nobody_calls(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    first = await bridges.attached(CLEANUP_TIMEOUT_SECONDS="1")
    session_id = (await first.start("SAY:x", project)).session_id
    refusing = twin.fail(Status(503), method="DELETE", times=None)
    assert (await first.end(session_id)).status == "ending"
    await first.close()
    refusing.release()
    await bridges.attached()

    async def gone() -> bool:
        return session_id not in twin.world.sessions

    await eventually(gone, what="the session is deleted")


async def test_a_turn_whose_prompt_is_on_its_way_is_left_to_who_sends_it(
    bridge: Bridge, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a keeper of its own would go on after the prompt was refused."""
    monkeypatch.setattr("opencode_mcp.engine.finisher.ROUND_S", 0.0)
    session_id = (await bridge.start("SAY:ready", project)).session_id
    for _ in range(5):
        twin.fail(Status(400), path=r"/prompt_async$")
        refused = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:no")
        assert refused.error == "UPSTREAM_ERROR", refused.text
    reply = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:yes")
    assert reply.status == "completed", reply.text


async def test_what_is_over_is_crossed_out(bridge: Bridge, bridges: Bridges, project: Path) -> None:
    await bridge.start("SAY:x", project)

    async def crossed_out() -> bool:
        with closing(sqlite3.connect(bridges.database)) as file:
            (count,) = file.execute(
                "SELECT count(*) FROM turns WHERE finished_at IS NULL"
            ).fetchone()
        return int(count) == 0

    await eventually(crossed_out, within_s=5, what="the turn is crossed out")

"""Watching turns on the twin: one or several, for a while, until there is news (contract 2.1)."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from opencode_mcp.callers import progress
from tests.support.polling import eventually, steadily
from tests.turns.asks import QUESTION
from tests.turns.reading import held, streaming
from tests.twin import Status

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support.bridge import Answer, Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin

ENDLESS = "SLOW:100000,50"


async def test_a_status_call_waits_for_the_end_of_the_turn(bridge: Bridge, project: Path) -> None:
    session_id = await bridge.begin("SLOW:20,20", project)
    answer = await bridge.call("opencode-status", sessionId=session_id, wait_seconds=30)
    assert (answer.status, "w19" in answer.text) == ("completed", True)


async def test_a_status_call_waits_no_longer_than_it_was_told(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = await bridge.begin(ENDLESS, project)
    await streaming(twin)
    began = time.monotonic()
    answer = await bridge.call("opencode-status", sessionId=session_id, wait_seconds=1)
    assert answer.status == "running"
    assert "opencode-cancel" in answer.structured["hint"]
    assert 1 <= time.monotonic() - began < 5
    assert (await bridge.status(session_id)).status == "running"


async def test_many_watch_one_turn_and_cancelling_one_of_them_touches_nothing(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Contract 2.1: a call that merely watches only lets go."""
    session_id = await bridge.begin(ENDLESS, project)
    watching: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        watching.append(message or "")

    arguments = {"sessionId": session_id, "wait-seconds": 30}
    calls = [
        asyncio.create_task(bridge.call_exactly("opencode-status", arguments, progress=hear))
        for _ in range(3)
    ]

    async def all_watch() -> bool:
        return len(watching) >= len(calls)

    await eventually(all_watch, what="all calls watch")
    calls[0].cancel()

    async def runs() -> bool:
        return session_id in twin.runs.running

    await steadily(runs, for_s=1, what="the turn runs on")
    await bridge.call("opencode-cancel", sessionId=session_id, wait_ms=10_000)
    answers = await asyncio.gather(*calls[1:])
    assert {answer.status for answer in answers} == {"cancelled"}


async def test_a_provider_retry_shows_with_its_attempt_and_time(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Case 22: not just running; a stop works at once."""
    twin.pace.retries_s = (3600.0,)
    session_id = await bridge.begin("STATUS:429", project)

    async def told() -> bool:
        return "upstreamRetry" in (await bridge.status(session_id)).structured

    await eventually(told, what="the retry is told")
    retry = (await bridge.status(session_id)).structured["upstreamRetry"]
    assert retry["attempt"] == 1
    assert "429" in retry["message"]
    assert retry["nextAt"] > retry["observedAt"]
    answer = await bridge.call("opencode-cancel", sessionId=session_id, wait_ms=10_000)
    assert answer.structured["cancelled"] is True


async def test_an_opencode_that_cannot_be_asked_shows_as_degraded_and_the_turn_is_not_lost(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    watching = asyncio.create_task(bridge.start(ENDLESS, project, wait_seconds=6))
    await streaming(twin)
    answered = twin.fail(Status(503), method="GET", times=None)
    twin.drop_streams()  # what was missed is read, and that fails
    answer = await watching
    assert (answer.status, answer.is_error) == ("running", False), answer.text
    assert answer.structured["executionState"] == "unknown"
    read = answer.structured["upstreamRead"]
    assert read["state"] == "degraded"
    assert read["reason"]
    assert read["since"] <= read["nextAt"]
    answered.release()
    stopped = await bridge.call("opencode-cancel", sessionId=answer.session_id, wait_ms=15_000)
    assert stopped.structured["cancelled"] is True


async def test_a_batch_is_ready_when_any_has_news(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    long = await bridge.begin(ENDLESS, project)
    with held(twin):
        short = await bridge.begin("SLOW:20,20", project)
        await streaming(twin, count=2)
    answer = await bridge.call("opencode-status", ids=[long, short], wait_seconds=30)
    said = answer.structured
    assert (said["kind"], said["status"], said["reason"]) == ("batch", "ready", "condition")
    assert (said["readyIds"], said["pendingIds"], said["waitFor"]) == ([short], [long], "any")
    assert [entry["status"] for entry in said["results"]] == ["running", "completed"]
    assert "w19" in said["results"][1]["content"]
    assert "w19" in answer.text
    assert long in answer.text


async def test_a_batch_waits_for_all_and_says_when_it_gave_up(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    done = (await bridge.start("SAY:done", project)).session_id
    long = await bridge.begin(ENDLESS, project)
    await streaming(twin)
    answer = await bridge.call("opencode-status", ids=[done, long], wait_seconds=1, wait_for="all")
    said = answer.structured
    assert (said["status"], said["reason"]) == ("waiting", "deadline")
    assert (said["readyIds"], said["pendingIds"]) == ([done], [long])
    await bridge.call("opencode-cancel", sessionId=long, wait_ms=0)
    answer = await bridge.call("opencode-status", ids=[done, long], wait_seconds=30, wait_for="all")
    assert answer.structured["status"] == "ready"
    assert [entry["status"] for entry in answer.structured["results"]] == ["completed", "cancelled"]


async def test_a_batch_tells_of_asks_and_of_ids_that_are_none(
    bridge: Bridge, project: Path
) -> None:
    asking = await bridge.start(QUESTION, project, approval_policy="caller")
    ids = [asking.session_id, "ses_unknown"]
    answer = await bridge.call("opencode-status", ids=ids, wait_seconds=5, wait_for="all")
    first, second = answer.structured["results"]
    assert answer.structured["readyIds"] == ids
    assert (first["status"], first["pendingApprovalCount"]) == ("waiting_for_approval", 1)
    assert (second["kind"], second["error"]["name"]) == ("error", "SESSION_NOT_FOUND")
    assert not answer.is_error


async def test_a_batch_looks_again_at_what_could_not_be_asked(
    bridges: Bridges, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opencode_mcp.callers.progress.INTERVAL_S", 0.1)
    first, second = await bridges.attached(), await bridges.attached(REQUEST_TIMEOUT_SECONDS="1")
    session_id = (await first.start("SAY:done", project)).session_id
    await twin.refuse()
    watching = asyncio.create_task(
        second.call("opencode-status", ids=[session_id], wait_seconds=30)
    )
    unknown = await second.status(session_id)
    await twin.listen()
    answer = await watching
    assert unknown.status == "unknown"
    assert answer.structured["readyIds"] == [session_id]
    assert answer.structured["results"][0]["status"] == "completed"


async def test_a_batch_of_long_answers_stays_within_its_bounds(
    bridge: Bridge, project: Path
) -> None:
    """Contract 3: the bridge checks the 45,000 characters of each half."""
    script = "SAY:" + "\x01é" * 20_000
    ids = [(await bridge.start(script, project)).session_id for _ in range(16)]
    answer = await bridge.call("opencode-status", ids=ids)
    assert all(entry["truncated"] for entry in answer.structured["results"])
    assert all(session_id in answer.text for session_id in ids)


async def test_progress_comes_while_a_call_watches_and_none_after_its_answer(
    bridge: Bridge, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case B31; the interval is shortened, so that the test need not wait for seconds."""
    monkeypatch.setattr("opencode_mcp.callers.progress.INTERVAL_S", 0.1)
    assert progress.INTERVAL_S < 10
    heard: list[tuple[float, str]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        del total
        heard.append((progress, message or ""))

    session_id = await bridge.begin(ENDLESS, project)
    await streaming(twin)
    arguments = {"sessionId": session_id, "wait-seconds": 2}
    await bridge.call_exactly("opencode-status", arguments, progress=hear)
    count = len(heard)
    assert count >= 3
    assert [value for value, _ in heard] == sorted({value for value, _ in heard})
    assert all(0 < len(text) <= 200 for _, text in heard)
    assert re.search(r"\d+ characters", heard[-1][1])
    await bridge.status(session_id)
    assert len(heard) == count


async def test_no_more_turns_run_than_the_operator_allows(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    first = await bridges.attached(MAX_RUNNING_TURNS="1")
    second = await bridges.attached(MAX_RUNNING_TURNS="1")
    session_id = await first.begin(ENDLESS, project)
    await streaming(twin)
    before = len(twin.world.sessions)
    refused = await second.call("opencode", prompt="SAY:x", cwd=str(project))
    assert (refused.is_error, refused.error) == (True, "RUN_CAPACITY")
    assert refused.structured["resendSafety"] == "not_submitted"
    assert refused.structured["error"]["retryable"] is True
    assert len(twin.world.sessions) == before
    await first.call("opencode-cancel", sessionId=session_id, wait_ms=10_000)
    for bridge in (second, first, second):  # the place is free again as soon as it is told so
        assert (await bridge.start("SAY:x", project)).status == "completed"


async def test_a_place_that_is_about_to_be_free_is_waited_for(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """Ours: that a turn is over is written down just after its caller is told."""
    bridge = await bridges.attached(MAX_RUNNING_TURNS="1")
    session_id = (await bridge.start("SAY:x", project)).session_id
    await eventually(partial(_set_over, bridges, session_id, None), what="it counts as open")
    call = asyncio.create_task(bridge.start("SAY:y", project))
    await steadily(partial(_is_open, call), for_s=0.1, what="it waits for the place")
    await _set_over(bridges, session_id, "2026-01-01T00:00:00.000000+00:00")
    assert (await call).status == "completed"
    assert twin.lines().count("POST /session") == 2


async def _is_open(call: asyncio.Task[Answer]) -> bool:
    return not call.done()


async def _set_over(bridges: Bridges, session_id: str, moment: str | None) -> bool:
    """Change when a turn was over; whether there was one that is in the other state."""

    def change() -> int:
        with closing(sqlite3.connect(bridges.database)) as file, file:
            return file.execute(
                "UPDATE turns SET finished_at = ?1"
                " WHERE session_id = ?2 AND (finished_at IS NULL) <> (?1 IS NULL)",
                [moment, session_id],
            ).rowcount

    return await asyncio.to_thread(change) == 1

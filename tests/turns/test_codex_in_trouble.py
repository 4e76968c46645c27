"""`codex` and `codex-reply` on the twin: a turn does not complete, or its call is cancelled."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.turns.cancels import ENDLESS, eventually_quiet, running
from tests.turns.exits import leave, serving
from tests.turns.reading import held, nothing_runs, only_session, streaming, submissions
from tests.turns.threads import reply
from tests.twin import Hang, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin


# --- what did not complete is an error


@pytest.mark.parametrize(
    ("script", "named"),
    [
        pytest.param("STATUS:401", "401", id="provider"),
        pytest.param("BLANK", "EMPTY_RESPONSE", id="empty"),
        pytest.param("SAY:half\nFINISH:content_filter", "half", id="filter"),
    ],
)
async def test_a_failed_turn_is_an_error_that_says_why_and_what_next(
    codex: Bridge, script: str, named: str
) -> None:
    answer = await codex.call("codex", prompt=script)
    assert answer.is_error
    assert named in answer.content
    assert "codex-reply" in answer.content
    assert "opencode-reply" not in answer.content
    again = await reply(codex, answer.thread_id, "SAY:fine")
    assert (again.is_error, again.content) == (False, "fine")


async def test_a_truncated_answer_comes_with_a_warning_in_both_halves(codex: Bridge) -> None:
    answer = await codex.call("codex", prompt="SAY:begun\nFINISH:length")
    assert answer.content.startswith("begun\n\nWarning TRUNCATED")
    assert not answer.is_error


async def test_the_turns_own_limit_is_kept(bridges: Bridges, twin: Twin, project: Path) -> None:
    codex = await bridges.attached(CODEX_TOOLS="true", TURN_TIMEOUT_SECONDS="1")
    answer = await codex.call("codex", prompt=ENDLESS, cwd=str(project))
    assert answer.is_error
    assert "time limit" in answer.content
    await nothing_runs(twin)
    assert (await codex.status(answer.thread_id)).status == "timeout"


async def test_a_stop_that_opencode_does_not_confirm_holds_the_call_up_only_so_long(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    codex = await bridges.attached(
        CODEX_TOOLS="true",
        TURN_TIMEOUT_SECONDS="1",
        CLEANUP_TIMEOUT_SECONDS="1",
        REQUEST_TIMEOUT_SECONDS="1",
    )
    hang = twin.fail(Hang(), path=r"/abort$", times=None)
    answer = await asyncio.wait_for(codex.call("codex", prompt=ENDLESS, cwd=str(project)), 30)
    assert answer.is_error
    assert "opencode-status" in answer.content
    assert answer.thread_id in answer.text
    hang.release()
    assert (await codex.settled(answer.thread_id)).status == "timeout"


async def test_who_is_stopped_by_another_call_is_told_so(codex: Bridge, twin: Twin) -> None:
    calling = asyncio.create_task(codex.call("codex", prompt=ENDLESS))
    await streaming(twin)
    thread_id = only_session(twin)
    await codex.call("opencode-cancel", threadId=thread_id, wait_ms=0)
    answer = await calling
    assert (answer.is_error, answer.thread_id) == (True, thread_id)
    assert "cut short" in answer.content


async def test_while_a_turn_runs_another_is_refused_and_nothing_is_sent(
    codex: Bridge, twin: Twin, project: Path
) -> None:
    thread_id = await codex.begin(ENDLESS, project)
    await running(twin, thread_id)
    answer = await reply(codex, thread_id, "SAY:more")
    assert (answer.is_error, answer.thread_id) == (True, thread_id)
    assert "SESSION_BUSY" in answer.content
    assert submissions(twin) == [ENDLESS]


async def test_a_prompt_whose_fate_is_unknown_is_an_error_with_its_thread(
    codex: Bridge, twin: Twin
) -> None:
    twin.fail(Hang(), path=r"/prompt_async$", times=None)
    twin.fail(Status(503), method="GET", path=r"/message/", times=None)
    answer = await codex.call("codex", prompt="SAY:x")
    assert answer.is_error
    assert "SUBMISSION_UNCONFIRMED" in answer.content
    assert answer.thread_id == only_session(twin)
    assert "opencode-status" in answer.content


async def test_an_opencode_that_is_away_is_an_error_that_says_that_nothing_was_sent(
    codex: Bridge, twin: Twin
) -> None:
    await twin.refuse()
    answer = await codex.call("codex", prompt="SAY:x")
    assert (answer.is_error, answer.thread_id) == (True, "")
    assert "OPENCODE_UNAVAILABLE" in answer.content
    assert "Nothing was sent" in answer.content
    await twin.listen()


async def test_of_a_long_answer_head_and_tail_are_given(bridges: Bridges, project: Path) -> None:
    codex = await bridges.attached(CODEX_TOOLS="true", MAX_OUTPUT_CHARS="200")
    script = f"SAY:begin {'x' * 40_000} end"
    answer = await codex.call("codex", prompt=script, cwd=str(project))
    assert answer.content.startswith("begin x")
    shown, _, rest = answer.content.partition("\n\nThe answer is cut")
    assert shown.endswith("x end")
    assert "characters left out" in shown
    assert len(shown) <= 200
    assert "opencode-output" in rest
    assert not answer.is_error


async def test_an_exit_answers_who_waits_with_the_thread(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    async with serving(bridges, tmp_path, CODEX_TOOLS="true") as server:
        server.call(1, "codex", prompt="HANG", cwd=str(project))
        await streaming(twin)
        code = await leave(server, "eof")
        (answer,) = server.answers(1)
        said = answer["result"]["structuredContent"]

        assert code == 0
        assert answer["result"]["isError"] is True
        assert set(said) == {"threadId", "content"}
        assert said["threadId"] == only_session(twin)
        assert "shutting down" in said["content"]
        assert "opencode-status" in said["content"]
        await nothing_runs(twin)


# --- cancelling


async def test_a_cancelled_call_stops_its_turn_and_the_thread_stays_usable(
    codex: Bridge, twin: Twin
) -> None:
    """Codex left such a thread unusable, or its call without an answer."""
    calling = asyncio.create_task(codex.call("codex", prompt=ENDLESS))
    await streaming(twin)
    thread_id = only_session(twin)
    calling.cancel()
    await eventually_quiet(twin, thread_id)
    await codex.settled(thread_id)
    answer = await reply(codex, thread_id, "SAY:alive")
    assert (answer.is_error, answer.content) == (False, "alive")

    calling = asyncio.create_task(reply(codex, thread_id, ENDLESS))
    await running(twin, thread_id)
    calling.cancel()
    await eventually_quiet(twin, thread_id)
    await codex.settled(thread_id)
    assert (await reply(codex, thread_id, "SAY:still")).content == "still"


async def test_a_cancelled_call_lets_its_turn_run_on_where_the_operator_says_so(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    codex = await bridges.attached(CODEX_TOOLS="true", ON_CALL_CANCEL="keep")
    with held(twin):
        calling = asyncio.create_task(codex.call("codex", prompt="SAY:told", cwd=str(project)))
        await streaming(twin)
        calling.cancel()
        with suppress(asyncio.CancelledError):
            await calling
    answer = await codex.settled(only_session(twin))
    assert (answer.status, "told" in answer.text) == ("completed", True)


async def test_progress_comes_while_it_waits(
    codex: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex ignored progress tokens, and its callers' clients gave up."""
    monkeypatch.setattr("opencode_mcp.callers.progress.INTERVAL_S", 0.1)
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        del total, message
        heard.append(progress)

    await codex.call_exactly("codex", {"prompt": "SLOW:100,5"}, progress=hear)
    assert len(heard) >= 3
    assert heard == sorted(set(heard))

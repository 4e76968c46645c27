"""How answers to an `output-schema` are judged: once each, and nobody is held up by it."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest

from opencode_mcp.clock import Clock
from opencode_mcp.engine import judge_process, judging
from opencode_mcp.engine.closing import Closing
from opencode_mcp.engine.judge_process import JudgeProcess
from opencode_mcp.engine.outcome import TurnStatus, Verdict
from opencode_mcp.engine.structured import Structures
from tests.store.make import a_turn
from tests.support.polling import eventually
from tests.turns.schemas import SCHEMA, VALUE, block, told

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.twin import Twin

pytestmark = pytest.mark.usefixtures("patient")

JUDGING = judging.__name__
#: a pattern that one text keeps busy for ever
BOMB = {"properties": {"a": {"pattern": "^(a+)+$"}}}
BOMB_TEXT = f'SAY:{{"a": "{"a" * 60}!"}}'


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Give the answers that a process was started for; None: a schema."""
    run, seen = JudgeProcess.run, []

    async def watched(self: JudgeProcess, schema: str, answer: str | None) -> dict[str, str]:
        seen.append(answer)
        return await run(self, schema, answer)

    monkeypatch.setattr(JudgeProcess, "run", watched)
    return seen


async def is_judging() -> bool:
    """Whether a process of this one judges something."""
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # it has just ended
            if JUDGING in child.cmdline():
                return True
    return False


async def test_a_judgement_that_does_not_end_is_given_up_and_holds_up_nobody(
    bridge: Bridge,
    twin: Twin,
    project: Path,
    judged: list[str | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judge_process, "CPU_S", 2.0)
    slow = asyncio.create_task(bridge.start(BOMB_TEXT, project, output_schema=BOMB))
    while judged.count(None) == len(judged):
        await asyncio.sleep(0.01)
    listed = await bridge.listed()
    assert not slow.done(), "the list came while the answer was judged"
    answer = await slow

    assert list(listed) == [answer.session_id]
    assert answer.status == "completed"
    assert answer.structured["structuredOutputStatus"] == "invalid"
    assert answer.structured["structuredOutputError"]["code"] == "JUDGEMENT_UNFINISHED"
    assert told(await bridge.status(answer.session_id)) == told(answer)
    assert len(judged) == 2, "the schema, and the answer once"
    assert not twin.runs.running


async def test_a_busy_machine_puts_a_judgement_off_and_the_next_look_makes_it(
    bridge: Bridge, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await bridge.start(block(VALUE), project, output_schema=SCHEMA)
    monkeypatch.setattr(judge_process, "LIMIT_S", 0.0)
    late = await bridge.call(
        "opencode-reply",
        sessionId=first.session_id,
        prompt=block({**VALUE, "count": 4}),
        output_schema=SCHEMA,
    )
    monkeypatch.setattr(judge_process, "LIMIT_S", 100.0)
    status = await bridge.status(first.session_id)

    assert late.status == "completed"
    assert late.structured["structuredOutputError"]["code"] == "NOT_JUDGED_YET"
    assert "opencode-status" in late.structured["structuredOutputError"]["message"]
    assert told(status) == {
        "structuredOutput": {**VALUE, "count": 4},
        "structuredOutputStatus": "valid",
    }


async def test_on_a_busy_machine_the_value_is_not_ready_and_the_next_call_has_it(
    bridge: Bridge, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not "unavailable", which tells a caller that to repeat the call is of no use."""
    checked = await bridge.start(block(VALUE), project, output_schema=SCHEMA)
    asked = {"sessionId": checked.session_id, "turn": 2, "section": "structured-output"}
    monkeypatch.setattr(judge_process, "LIMIT_S", 0.0)
    await bridge.call(
        "opencode-reply",
        sessionId=checked.session_id,
        prompt=block({**VALUE, "count": 5}),
        output_schema=SCHEMA,
    )
    early = await bridge.call("opencode-output", **asked)
    monkeypatch.setattr(judge_process, "LIMIT_S", 100.0)
    late = await bridge.call("opencode-output", **asked)

    assert (early.error, early.structured["error"]["retryable"]) == ("OUTPUT_NOT_READY", True)
    assert json.loads(late.text) == {**VALUE, "count": 5}


async def test_a_busy_machine_does_not_call_a_good_schema_a_bad_one(
    bridge: Bridge, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_process, "LIMIT_S", 0.0)
    early = await bridge.call("opencode", prompt="x", cwd=str(project), output_schema=SCHEMA)
    assert twin.world.sessions == {}
    monkeypatch.setattr(judge_process, "LIMIT_S", 100.0)
    late = await bridge.start(block(VALUE), project, output_schema=SCHEMA)

    assert (early.error, early.structured["error"]["retryable"]) == ("INVALID_OUTPUT_SCHEMA", True)
    assert "same call again" in early.text
    assert "mend" not in early.text
    assert early.structured["resendSafety"] == "not_submitted"
    assert late.structured["structuredOutputStatus"] == "valid"


async def test_an_answer_is_judged_once_however_often_it_is_looked_at(
    bridge: Bridge, project: Path, judged: list[str | None]
) -> None:
    session_id = await bridge.begin(f"SLOW:5,50\n{block(VALUE)}", project, output_schema=SCHEMA)
    watching = [
        bridge.call("opencode-status", sessionId=session_id, wait_seconds=30) for _ in range(3)
    ]
    answers = await asyncio.gather(*watching)
    answers.append(await bridge.status(session_id))

    assert [told(answer)["structuredOutput"] for answer in answers] == [VALUE] * 4
    assert len([answer for answer in judged if answer is not None]) == 1


async def test_several_turns_that_are_watched_are_judged_each(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    scripts = [f"SLOW:20,50\n{block(VALUE)}", "SLOW:20,50"]
    ids = [await bridge.begin(script, project, output_schema=SCHEMA) for script in scripts]
    answer = await bridge.call("opencode-status", ids=ids, wait_for="all", wait_seconds=30)

    statuses = [entry["structuredOutputStatus"] for entry in answer.structured["results"]]
    assert statuses == ["valid", "missing"]
    assert "[structured output: missing] NO_JSON" in answer.text
    assert not twin.runs.running


async def test_the_same_schema_is_checked_once(
    bridge: Bridge, project: Path, judged: list[str | None]
) -> None:
    first = await bridge.start(block(VALUE), project, output_schema=SCHEMA)
    await bridge.call(
        "opencode-reply", sessionId=first.session_id, prompt=block(VALUE), output_schema=SCHEMA
    )
    assert judged.count(None) == 1


async def test_an_exit_waits_for_no_judgement() -> None:
    closing = Closing(Clock())
    structures = Structures(closing)
    verdict = Verdict(TurnStatus.COMPLETED, answer=BOMB_TEXT[4:])
    completing = asyncio.create_task(
        structures.completed(replace(a_turn(), output_schema=json.dumps(BOMB)), verdict)
    )
    await eventually(is_judging, what="the answer is judged")
    closing.begin(refuse=True)
    assert await completing == verdict
    await structures.close()
    assert not await is_judging()

"""What a turn came to, on the real OpenCode: each family of outcomes at least once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.support.sandbox import write_project
from tests.real.support.scripts import ENDLESS, bash, tool, write
from tests.support.polling import eventually, steadily

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.witness import Witness
    from tests.support.bridge import Answer, Bridge

#: a finish that OpenCode does not know: it asks the model again
_AGAIN = "FINISH:weird"
_LIMIT = 6


def _codes(answer: Answer) -> list[str]:
    return [warning["code"] for warning in answer.structured.get("warnings", [])]


@pytest.fixture
def unguarded(tmp_path: Path) -> Path:
    """Give a folder where OpenCode's own guard against the same call again is switched off."""
    return write_project(tmp_path / "loops", {"permission": {"doom_loop": "allow"}})


async def test_a_compaction_in_the_middle_is_not_the_answer(bridge: Bridge, project: Path) -> None:
    """OpenCode: it compacts when the provider finds the request too large (413), and goes on."""
    answer = await bridge.start("STATUS:413", project)
    again = await bridge.call(
        "opencode-reply", sessionId=answer.session_id, prompt="STATUS:413,1\nSAY:later"
    )

    assert (answer.status, answer.is_error) == ("completed", False)
    assert "You said: The previous request exceeded" in answer.text
    assert "Scripted title" not in answer.text, "that is the summary"
    assert (again.status, again.structured["turn"]) == ("completed", 2)
    assert again.text.startswith("later")


async def test_a_finish_that_opencode_does_not_know_is_no_end(
    bridge: Bridge, project: Path
) -> None:
    answer = await bridge.start(f"SAY:not yet\n{_AGAIN}\nTHEN\nSAY:now", project)

    assert answer.status == "completed"
    assert answer.text.startswith("now")
    assert answer.structured["finish"] == "stop"


async def test_a_providers_refusal_keeps_its_numbers_and_not_its_headers(
    bridge: Bridge, project: Path
) -> None:
    answer = await bridge.start("STATUS:400,,7", project)

    assert (answer.status, answer.error) == ("failed", "UPSTREAM_ERROR")
    fault = answer.structured["error"]
    assert (fault["statusCode"], fault["retryable"], fault["retryAfterSeconds"]) == (400, False, 7)
    assert answer.structured["resendSafety"] == "no_observed_effects"
    assert "aiohttp" not in str(answer.structured), "the provider's headers"


async def test_text_before_a_fault_is_kept_as_a_part(bridge: Bridge, project: Path) -> None:
    answer = await bridge.start("SAY:as far as it came\nMALFORMED", project)

    assert (answer.status, answer.error) == ("failed", "UPSTREAM_ERROR")
    assert "as far as it came" in answer.text
    assert answer.structured["output"]["partial"] is True
    assert "PARTIAL_ANSWER" in _codes(answer)
    assert "this is not json" not in answer.text, "the provider's stream"


async def test_changed_files_are_told_without_git(bridge: Bridge, project: Path) -> None:
    """Case 43. OpenCode: its own summary of changes is empty where there is no git (tried)."""
    made = project / "made.txt"
    edit = tool("edit", filePath=str(made), oldString="one", newString="two")
    answer = await bridge.start(
        f"{write(made, 'one')}\nTHEN\n{edit}\nTHEN\n{bash('true')}\nTHEN\nSAY:done", project
    )

    assert answer.status == "completed"
    assert made.read_text(encoding="utf-8") == "two"
    assert answer.structured["filesChanged"] == ["made.txt"]
    assert answer.structured["filesChangedCount"] == 1
    assert answer.structured["resendSafety"] == "inspect_effects"


async def test_a_command_that_an_abort_cut_is_cancelled_with_its_output(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    """Facts 4.2: OpenCode itself calls such a call completed."""
    session_id = await bridge.begin(bash("echo started; sleep 60"), project)

    async def prints() -> bool:
        return "started\\n" in str(await witness.messages(session_id))

    await eventually(prints, what="the command has printed")
    await witness.abort(session_id)
    answer = await bridge.settled(session_id)

    assert answer.status == "cancelled"
    (call,) = answer.structured["toolCalls"]
    assert (call["tool"], call["status"]) == ("bash", "cancelled")
    assert "started" in call["reason"]
    assert _codes(answer) == ["ABORTED_ELSEWHERE", "PROCESS_MAY_LIVE"]
    assert answer.structured["resendSafety"] == "inspect_effects"
    assert answer.structured["executionState"] == "stopped"


@pytest.mark.parametrize(
    ("step", "pattern"),
    [
        pytest.param(f"EMPTY\n{_AGAIN}", "empty", id="empty"),
        pytest.param(tool("nosuch", a=1), "malformed_tool_call", id="unknown-tool"),
    ],
)
async def test_answers_that_repeat_without_progress_end_the_turn(
    bridge: Bridge, witness: Witness, unguarded: Path, step: str, pattern: str
) -> None:
    answer = await bridge.start(f"{step}\nREPEAT", unguarded, timeout_seconds=120)
    settled = await bridge.settled(answer.session_id)
    asked = len(witness.model.requests)

    assert (settled.status, settled.error) == ("failed", "UPSTREAM_RESPONSE_LOOP")
    loop = settled.structured["responseLoop"]
    assert loop["count"] >= _LIMIT
    assert loop["pattern"] == pattern
    assert loop["windowMs"] > 0
    assert not await witness.leftovers(settled.session_id, unguarded)

    async def silent() -> bool:
        return len(witness.model.requests) == asked

    await steadily(silent, for_s=0.5, what="the model is not asked again")
    reply = await bridge.call("opencode-reply", sessionId=settled.session_id, prompt="SAY:better")
    assert (reply.status, reply.text[:6]) == ("completed", "better")


@pytest.mark.parametrize(
    ("script", "status", "error"),
    [
        pytest.param("EMPTY", "failed", "EMPTY_RESPONSE", id="empty"),
        pytest.param("BLANK", "failed", "EMPTY_RESPONSE", id="white-space"),
        pytest.param("MALFORMED", "failed", None, id="malformed"),
        pytest.param("SAY:partly\nFINISH:content_filter", "failed", None, id="content-filter"),
        pytest.param("STATUS:401", "failed", None, id="refused-by-the-provider"),
    ],
)
async def test_a_turn_without_a_good_answer_has_failed(
    bridge: Bridge, project: Path, script: str, status: str, error: str | None
) -> None:
    answer = await bridge.start(script, project)

    assert (answer.status, answer.is_error) == (status, True)
    assert answer.error is not None
    assert error in {None, answer.error}
    assert answer.structured["error"]["message"] in answer.text
    assert (await bridge.status(answer.session_id)).status == status
    assert (await bridge.end(answer.session_id)).status == "ended"


async def test_an_answer_cut_at_the_token_limit_is_complete_with_a_warning(
    bridge: Bridge, project: Path
) -> None:
    answer = await bridge.start("SAY:half an ans\nFINISH:length", project)

    assert (answer.status, answer.is_error) == ("completed", False)
    assert "half an ans" in answer.text
    assert "TRUNCATED" in [warning["code"] for warning in answer.structured["warnings"]]


async def test_a_provider_that_recovers_only_delays_the_answer(
    bridge: Bridge, project: Path
) -> None:
    """OpenCode: a 503 of the provider is retried by OpenCode itself (facts 8.5)."""
    answer = await bridge.start("STATUS:503,1\nSAY:after all", project)

    assert answer.status == "completed"
    assert "after all" in answer.text


async def test_a_prompt_for_an_unknown_model_fails_and_names_it(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    """Case B11: OpenCode takes the prompt with 204 and runs nothing (facts 2.4)."""
    answer = await bridge.call("opencode", prompt="SAY:x", cwd=str(project), model="nosuch/none")

    assert answer.is_error
    assert "nosuch/none" in answer.text
    assert not await witness.busy(project)
    if "sessionId" in answer.structured:
        assert (await bridge.end(answer.session_id)).status == "ended"
    assert await witness.sessions(project) == []


async def test_a_prompt_for_an_unknown_agent_fails_and_names_it(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    """OpenCode: not even the user message is stored, yet it answers 204 (facts 2.4)."""
    answer = await bridge.call("opencode", prompt="SAY:x", cwd=str(project), agent="no-such-agent")

    assert answer.is_error
    assert "no-such-agent" in answer.text
    assert not await witness.busy(project)


async def test_a_turn_that_runs_out_of_time_is_stopped(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    answer = await bridge.start(ENDLESS, project, timeout_seconds=2)

    assert (answer.status, answer.is_error) == ("timeout", True)
    assert answer.structured["cleanup"] == "complete"
    assert not await witness.leftovers(answer.session_id, project)
    again = await bridge.call("opencode-reply", sessionId=answer.session_id, prompt="SAY:alive")
    assert (again.status, "alive" in again.text) == ("completed", True)


async def test_a_failed_provider_is_retried_and_shown_as_running(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    session_id = await bridge.begin("STATUS:503", project)

    async def retrying() -> bool:
        return session_id in await witness.busy(project)

    await eventually(retrying, what="OpenCode retries")
    assert (await bridge.status(session_id)).status == "running"
    await bridge.end(session_id)

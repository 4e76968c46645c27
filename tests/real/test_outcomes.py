"""What a turn came to, on the real OpenCode: each family of outcomes at least once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.support.sandbox import write_project
from tests.real.support.scripts import bash, tool, write
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

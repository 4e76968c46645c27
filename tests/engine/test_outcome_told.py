"""What is told of a turn besides its status: its answer, warnings, and whether to send it again."""

from __future__ import annotations

import pytest

from opencode_mcp.engine.outcome import TurnStatus, Unread, Verdict
from opencode_mcp.opencode.models import RemoteStatus
from opencode_mcp.records import StopReason
from tests.engine.make import (
    ABORTED,
    BUSY,
    CALLED,
    SAID,
    START_MS,
    assistant,
    error,
    judged,
    summary,
    text,
    tool,
    user,
)


def _codes(verdict: Verdict) -> list[str]:
    return [code for code, _ in verdict.warnings]


@pytest.mark.parametrize(
    ("verdict", "codes"),
    [
        pytest.param(judged(user(), SAID), [], id="whole"),
        pytest.param(
            judged(user(), assistant(text("hi"), finish="length")), ["TRUNCATED"], id="length"
        ),
        pytest.param(
            judged(user(), assistant(text("hi"), finish="other")),
            ["NONSTANDARD_FINISH"],
            id="other-finish",
        ),
        pytest.param(
            judged(user(), assistant(text("hi"), finish="unknown")),
            ["NONSTANDARD_FINISH"],
            id="unknown",
        ),
        pytest.param(judged(user(), CALLED, assistant()), ["EARLIER_TEXT"], id="earlier-text"),
        pytest.param(
            judged(user(), assistant(text("par"), error=ABORTED, finish=None)),
            ["PARTIAL_ANSWER", "ABORTED_ELSEWHERE"],
            id="cut-by-others",
        ),
        pytest.param(
            judged(user(), SAID, status=BUSY, overdue_busy=True), ["STILL_BUSY"], id="still-busy"
        ),
        pytest.param(
            judged(user(), SAID, unread=Unread.EARLIER),
            ["UPSTREAM_RESPONSE_TOO_LARGE"],
            id="too-large",
        ),
        pytest.param(judged(user(), status=BUSY), [], id="running"),
        pytest.param(
            judged(user(), assistant(tool("running"), completed=False, finish=None)),
            ["PROCESS_MAY_LIVE"],
            id="killed-with-a-command",
        ),
    ],
)
def test_what_is_not_whole_is_warned_of(verdict: Verdict, codes: list[str]) -> None:
    assert _codes(verdict) == codes
    assert all(len(said) <= 300 for _, said in verdict.warnings)


def test_the_answer_is_the_last_messages_text() -> None:
    verdict = judged(user(), CALLED, assistant(text("It is 4."), text("Really.")))
    assert verdict.answer == "It is 4.\n\nReally."


def test_an_earlier_text_is_not_lost_where_the_last_step_says_nothing() -> None:
    assert judged(user(), CALLED, assistant()).answer == "I will look"


def test_a_summary_is_never_an_answer() -> None:
    verdict = judged(user(), CALLED, *summary(error=error("APIError"), finish=None))
    assert verdict.answer == "I will look"


def test_partial_text_is_kept_when_a_turn_fails() -> None:
    cut = assistant(text("half an ans"), error=error("APIError"), finish=None)
    assert judged(user(), cut).answer == "half an ans"


def test_a_retry_is_told() -> None:
    retry = RemoteStatus(type="retry", attempt=2, message="slow down")
    verdict = judged(user(), status=retry)
    assert verdict.retry == retry
    assert verdict.status is TurnStatus.RUNNING


def test_opencodes_own_word_for_a_turn_without_an_answer_is_told() -> None:
    failure = judged(user(), session_error="Model not found: fake/nope.").failure
    assert failure is not None
    assert "Model not found: fake/nope." in failure.message


@pytest.mark.parametrize(
    ("verdict", "safety"),
    [
        pytest.param(judged(user(), status=BUSY), None, id="running"),
        pytest.param(judged(), "unknown", id="never-seen"),
        pytest.param(
            judged(user(), SAID, status=BUSY, overdue_busy=True), "unknown", id="still-busy"
        ),
        pytest.param(judged(user(), SAID), "no_observed_effects", id="mere-text"),
        pytest.param(
            judged(user(), assistant(tool("completed", "read"), error=ABORTED)),
            "no_observed_effects",
            id="it-only-read",
        ),
        pytest.param(
            judged(user(), assistant(tool("error", "mcp_deploy"), error=ABORTED)),
            "inspect_effects",
            id="a-tool-we-do-not-know",
        ),
        pytest.param(
            judged(user(summary={"diffs": [{"file": "a.py"}]}), SAID),
            "inspect_effects",
            id="a-file-changed",
        ),
        pytest.param(
            judged(user(), unread=Unread.NEWEST), "inspect_effects", id="not-all-was-read"
        ),
    ],
)
def test_it_is_told_whether_the_prompt_may_be_sent_again(
    verdict: Verdict, safety: str | None
) -> None:
    assert verdict.resend_safety == safety


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        pytest.param(judged(user(), status=BUSY), "active", id="busy"),
        pytest.param(judged(user(), SAID), "stopped", id="over"),
        pytest.param(judged(user(), SAID, status=BUSY, overdue_busy=True), "unknown", id="overdue"),
        pytest.param(judged(), "unknown", id="never-seen"),
    ],
)
def test_the_execution_state_says_only_what_is_known(verdict: Verdict, state: str) -> None:
    assert verdict.execution == state


def test_a_loop_is_told_with_its_numbers() -> None:
    steps = [assistant(finish="unknown", at_ms=START_MS + 1000 * number) for number in range(1, 8)]
    cut = assistant(error=ABORTED, finish=None, at_ms=START_MS + 9000)
    verdict = judged(user(), *steps, cut, stop=StopReason.LOOP)
    loop = verdict.response_loop
    assert loop is not None
    assert (loop.count, loop.window_ms, loop.pattern) == (7, 6100, "empty")
    assert verdict.failure is not None
    assert "7 times" in verdict.failure.message

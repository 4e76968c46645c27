"""What a turn came to: the table of cases, each from evidence alone."""

from __future__ import annotations

import pytest

from opencode_mcp.engine.outcome import TurnStatus, Unread, Verdict
from opencode_mcp.opencode.models import RemoteStatus
from opencode_mcp.records import StopReason
from tests.engine.make import (
    ABORTED,
    ASK,
    BUSY,
    START_MS,
    assistant,
    error,
    go_on,
    invalid,
    judged,
    reasoning,
    summary,
    text,
    tool,
    user,
)

_CALLED = assistant(text("I will look"), tool("completed"), finish="tool-calls")
_SAID = assistant(text("hi"))
_DEAD = assistant(text(""), finish=None, completed=False)
_NO_TRACE = assistant(finish=None)
_INTERRUPTED = error("UnknownError", message="All fibers interrupted without error")
_LATER = START_MS + 60_000

_CASES = {
    # it came to its end
    "stop": (judged(user(), _SAID), "completed", None),
    "length": (judged(user(), assistant(text("hi"), finish="length")), "completed", None),
    "provider-word-finish": (
        judged(user(), assistant(text("hi"), finish="eos")),
        "completed",
        None,
    ),
    "finish-other": (judged(user(), assistant(text("hi"), finish="other")), "completed", None),
    "finish-unknown-and-idle-for-good": (
        judged(user(), assistant(text("hi"), finish="unknown")),
        "completed",
        None,
    ),
    "finish-unknown-and-opencode-will-ask-again": (
        judged(user(), assistant(text("hi"), finish="unknown"), settled=False),
        "running",
        None,
    ),
    "tools-then-an-answer": (judged(user(), _CALLED, assistant(text("ok"))), "completed", None),
    "no-text-but-effects": (judged(user(), _CALLED, assistant()), "completed", None),
    "provider-runs-its-tool": (
        judged(
            user(),
            assistant(tool("completed") | {"metadata": {"providerExecuted": True}}, text("found")),
        ),
        "completed",
        None,
    ),
    # it came to nothing
    "empty": (judged(user(), assistant()), "failed", "EMPTY_RESPONSE"),
    "white-space": (judged(user(), assistant(text(" \n\t"))), "failed", "EMPTY_RESPONSE"),
    "reasoning-only": (judged(user(), assistant(reasoning("hm"))), "failed", "EMPTY_RESPONSE"),
    "only-opencodes-own-text": (
        judged(user(), assistant(text("note", synthetic=True))),
        "failed",
        "EMPTY_RESPONSE",
    ),
    "only-ignored-text": (
        judged(user(), assistant(text("note", ignored=True))),
        "failed",
        "EMPTY_RESPONSE",
    ),
    "only-a-call-that-was-none": (
        judged(user(), assistant(invalid(), finish="tool-calls"), assistant()),
        "failed",
        "EMPTY_RESPONSE",
    ),
    # the provider or OpenCode failed
    "content-filter-finish": (
        judged(user(), assistant(text("hi"), finish="content-filter")),
        "failed",
        "UPSTREAM_ERROR",
    ),
    "content-filter-error": (
        judged(user(), assistant(text("hi"), error=error("ContentFilterError"), finish=None)),
        "failed",
        "UPSTREAM_ERROR",
    ),
    **{
        f"error-{name}": (
            judged(user(), assistant(error=error(name), finish=None)),
            "failed",
            "UPSTREAM_ERROR",
        )
        for name in (
            "APIError",
            "ProviderAuthError",
            "ContextOverflowError",
            "MessageOutputLengthError",
            "StructuredOutputError",
            "UnknownError",
            "SomethingNewError",
        )
    },
    "error-after-tools": (
        judged(user(), _CALLED, assistant(error=error("APIError"), finish=None)),
        "failed",
        "UPSTREAM_ERROR",
    ),
    "error-in-a-compaction": (
        judged(user(), _NO_TRACE, *summary(error=error("ContextOverflowError"), finish=None)),
        "failed",
        "UPSTREAM_ERROR",
    ),
    # it never came to an end
    "tool-calls-without-an-end": (
        judged(user(), assistant(tool("error"), finish="tool-calls")),
        "failed",
        "TURN_INCOMPLETE",
    ),
    "stop-with-tool-calls-without-an-end": (
        judged(user(), assistant(text("on it"), tool("completed"), finish="stop")),
        "failed",
        "TURN_INCOMPLETE",
    ),
    "stop-with-tool-calls-goes-on": (
        judged(user(), assistant(text("on it"), tool("completed")), settled=False),
        "running",
        None,
    ),
    "killed-server": (judged(user(), _DEAD), "failed", "TURN_INCOMPLETE"),
    "killed-server-just-now": (judged(user(), _DEAD, settled=False), "running", None),
    "wrong-model": (judged(user()), "failed", "TURN_INCOMPLETE"),
    "prompt-never-seen": (judged(), "failed", "TURN_INCOMPLETE"),
    "prompt-not-seen-yet": (judged(settled=False), "running", None),
    "not-begun-yet": (judged(user(), settled=False), "running", None),
    # it is going on
    "busy": (judged(user(), status=BUSY), "running", None),
    "busy-after-a-final-message": (judged(user(), _SAID, status=BUSY), "running", None),
    "busy-long-after-a-final-message": (
        judged(user(), _SAID, status=BUSY, overdue_busy=True),
        "completed",
        None,
    ),
    "busy-long-without-a-final-message": (
        judged(user(), _CALLED, status=BUSY, overdue_busy=True),
        "running",
        None,
    ),
    "asks": (judged(user(), status=BUSY, pending=(ASK,)), "waiting_for_approval", None),
    "stopping": (judged(user(), status=BUSY, stop=StopReason.CANCEL), "stopping", None),
    "stopping-while-it-asks": (
        judged(user(), status=BUSY, pending=(ASK,), stop=StopReason.CANCEL),
        "stopping",
        None,
    ),
    # it was stopped
    "aborted-by-us": (
        judged(user(), assistant(error=ABORTED, finish=None), stop=StopReason.CANCEL),
        "cancelled",
        None,
    ),
    "aborted-by-an-end": (
        judged(user(), assistant(error=ABORTED, finish=None), stop=StopReason.END),
        "cancelled",
        None,
    ),
    "aborted-by-somebody": (
        judged(user(), assistant(text("par"), error=ABORTED, finish=None)),
        "cancelled",
        None,
    ),
    "aborted-at-its-limit": (
        judged(user(), assistant(error=ABORTED, finish=None), stop=StopReason.TIMEOUT),
        "timeout",
        "TURN_INCOMPLETE",
    ),
    "aborted-in-a-loop": (
        judged(user(), assistant(error=ABORTED, finish=None), stop=StopReason.LOOP),
        "failed",
        "UPSTREAM_RESPONSE_LOOP",
    ),
    "aborted-as-a-fiber": (
        judged(user(), assistant(error=_INTERRUPTED, finish=None), stop=StopReason.CANCEL),
        "cancelled",
        None,
    ),
    "a-fiber-dies-by-itself": (
        judged(user(), assistant(error=_INTERRUPTED, finish=None)),
        "failed",
        "UPSTREAM_ERROR",
    ),
    "aborted-in-a-retry-leaves-no-trace": (
        judged(user(), _NO_TRACE, stop=StopReason.CANCEL),
        "cancelled",
        None,
    ),
    "aborted-in-a-retry-not-settled": (
        judged(user(), _NO_TRACE, stop=StopReason.CANCEL, settled=False),
        "stopping",
        None,
    ),
    "aborted-in-a-retry-by-somebody": (judged(user(), _NO_TRACE), "failed", "TURN_INCOMPLETE"),
    "aborted-before-it-was-seen": (judged(stop=StopReason.CANCEL), "cancelled", None),
    "finished-before-the-abort": (judged(user(), _SAID, stop=StopReason.CANCEL), "completed", None),
    "failed-before-the-abort": (
        judged(user(), assistant(error=error("APIError"), finish=None), stop=StopReason.CANCEL),
        "failed",
        "UPSTREAM_ERROR",
    ),
    "finished-and-then-an-abort-error": (  # case 42
        judged(user(), assistant(text("hi"), error=ABORTED), stop=StopReason.CANCEL),
        "cancelled",
        None,
    ),
    # a compaction in the middle
    "a-compaction-is-not-an-answer": (judged(user(), *summary()), "failed", "TURN_INCOMPLETE"),
    "compaction-then-nothing-yet": (
        judged(user(), _NO_TRACE, *summary(), settled=False),
        "running",
        None,
    ),
    "compaction-then-going-on": (
        judged(user(), _NO_TRACE, *summary(), go_on(), assistant(text("done"))),
        "completed",
        None,
    ),
    "compaction-then-the-prompt-again": (
        judged(user(), _NO_TRACE, *summary(), user(at_ms=_LATER), assistant(text("done"))),
        "completed",
        None,
    ),
    "aborted-in-a-compaction": (
        judged(user(), _CALLED, *summary(error=ABORTED, finish=None), stop=StopReason.CANCEL),
        "cancelled",
        None,
    ),
    # other turns of the session
    "a-later-turn-does-not-answer-a-stopped-one": (
        judged(user(), _NO_TRACE, user(), assistant(text("later")), stop=StopReason.CANCEL),
        "cancelled",
        None,
    ),
    "a-later-turn-does-not-answer-a-dead-one": (
        judged(user(), _DEAD, user(at_ms=_LATER), assistant(text("later"), at_ms=_LATER + 1)),
        "failed",
        "TURN_INCOMPLETE",
    ),
    "a-later-turn-does-not-answer-a-rejected-one": (
        judged(
            user(),
            assistant(tool("error"), finish="tool-calls"),
            user(at_ms=_LATER),
            assistant(text("later"), at_ms=_LATER + 1),
        ),
        "failed",
        "TURN_INCOMPLETE",
    ),
    "somebody-steers-the-running-turn": (
        judged(user(), _CALLED, user(at_ms=START_MS + 150), assistant(text("both"))),
        "completed",
        None,
    ),
    # what could not be read
    "newest-message-too-large": (
        judged(user(), unread=Unread.NEWEST),
        "failed",
        "UPSTREAM_RESPONSE_TOO_LARGE",
    ),
    "newest-message-too-large-and-an-older-end": (
        judged(user(), _SAID, unread=Unread.NEWEST),
        "failed",
        "UPSTREAM_RESPONSE_TOO_LARGE",
    ),
    "newest-message-too-large-and-busy": (
        judged(user(), status=BUSY, unread=Unread.NEWEST),
        "running",
        None,
    ),
    "newest-message-too-large-and-stopped": (
        judged(user(), stop=StopReason.CANCEL, unread=Unread.NEWEST),
        "cancelled",
        None,
    ),
    "an-earlier-message-too-large": (
        judged(user(), _SAID, unread=Unread.EARLIER),
        "completed",
        None,
    ),
}


@pytest.mark.parametrize(
    ("verdict", "status", "name"), [pytest.param(*case, id=word) for word, case in _CASES.items()]
)
def test_a_turn_is_judged_by_its_evidence(verdict: Verdict, status: str, name: str | None) -> None:
    assert verdict.status == status
    assert (verdict.failure.name if verdict.failure else None) == name
    assert verdict.is_over == (verdict.resend_safety is not None)


def _codes(verdict: Verdict) -> list[str]:
    return [code for code, _ in verdict.warnings]


@pytest.mark.parametrize(
    ("verdict", "codes"),
    [
        pytest.param(_CASES["stop"][0], [], id="whole"),
        pytest.param(_CASES["length"][0], ["TRUNCATED"], id="length"),
        pytest.param(_CASES["finish-other"][0], ["NONSTANDARD_FINISH"], id="other-finish"),
        pytest.param(
            _CASES["finish-unknown-and-idle-for-good"][0], ["NONSTANDARD_FINISH"], id="unknown"
        ),
        pytest.param(_CASES["no-text-but-effects"][0], ["EARLIER_TEXT"], id="earlier-text"),
        pytest.param(
            _CASES["aborted-by-somebody"][0],
            ["PARTIAL_ANSWER", "ABORTED_ELSEWHERE"],
            id="cut-by-others",
        ),
        pytest.param(_CASES["busy-long-after-a-final-message"][0], ["STILL_BUSY"], id="still-busy"),
        pytest.param(
            _CASES["an-earlier-message-too-large"][0],
            ["UPSTREAM_RESPONSE_TOO_LARGE"],
            id="too-large",
        ),
        pytest.param(_CASES["busy"][0], [], id="running"),
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
    verdict = judged(user(), _CALLED, assistant(text("It is 4."), text("Really.")))
    assert verdict.answer == "It is 4.\n\nReally."


def test_an_earlier_text_is_not_lost_where_the_last_step_says_nothing() -> None:
    assert judged(user(), _CALLED, assistant()).answer == "I will look"


def test_a_summary_is_never_an_answer() -> None:
    verdict = judged(user(), _CALLED, *summary(error=error("APIError"), finish=None))
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
            judged(user(), _SAID, status=BUSY, overdue_busy=True), "unknown", id="still-busy"
        ),
        pytest.param(judged(user(), _SAID), "no_observed_effects", id="mere-text"),
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
            judged(user(summary={"diffs": [{"file": "a.py"}]}), _SAID),
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
        pytest.param(judged(user(), _SAID), "stopped", id="over"),
        pytest.param(
            judged(user(), _SAID, status=BUSY, overdue_busy=True), "unknown", id="overdue"
        ),
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

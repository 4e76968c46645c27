"""What a turn's result shows of its verdict, and that it fits whatever the turn did."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from opencode_mcp.callers.presenting import present_turn
from opencode_mcp.callers.sizing import MAX_RESULT_CHARS
from opencode_mcp.callers.wire import output_schema
from opencode_mcp.engine.effects import ToolCall, Usage
from opencode_mcp.engine.failures import Failure
from opencode_mcp.engine.looping import ResponseLoop
from opencode_mcp.engine.outcome import TurnStatus, Verdict
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode.models import PermissionRequest, QuestionRequest, RemoteStatus
from opencode_mcp.records import Session, Submission, Turn

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result

_SHAPE = Draft202012Validator(output_schema())
_NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
_SESSION_ID = "ses_" + "a" * 26
_TURN_ID = "msg_" + "b" * 26


def _session(directory: str = "/repo") -> Session:
    return Session(_SESSION_ID, "local", "i", directory, Phase.ACTIVE, 1, _NOW, _NOW)


def _turn(submission: Submission = Submission.RECORDED, finished_s: float | None = None) -> Turn:
    finished = None if finished_s is None else _NOW + timedelta(seconds=finished_s)
    return Turn(_SESSION_ID, 3, _TURN_ID, None, submission, _NOW, _NOW, finished_at=finished)


def _present(
    verdict: Verdict,
    *,
    session: Session | None = None,
    turn: Turn | None = None,
    max_chars: int = 20_000,
    after_s: float = 5,
) -> Result:
    result = present_turn(
        session or _session(),
        turn or _turn(),
        verdict,
        max_chars=max_chars,
        now=_NOW + timedelta(seconds=after_s),
    )
    _SHAPE.validate(result)
    return result


def _over(status: TurnStatus = TurnStatus.COMPLETED, **more: Any) -> Verdict:  # noqa: ANN401 - fields of a verdict
    fields = {"execution": "stopped", "resend_safety": "no_observed_effects", **more}
    return Verdict(status, **fields)


_FAILED = Failure(
    "UPSTREAM_ERROR", "slow down", 429, retryable=True, retry_after_s=7.5, condition="APIError"
)


def test_a_providers_fault_is_told_in_full_by_either_half() -> None:
    result = _present(_over(TurnStatus.FAILED, failure=_FAILED, resend_safety="inspect_effects"))
    assert result.get("error") == {
        "name": "UPSTREAM_ERROR",
        "message": "slow down",
        "statusCode": 429,
        "retryable": True,
        "retryAfterSeconds": 7.5,
        "condition": "APIError",
    }
    for word in ("UPSTREAM_ERROR", "429", "slow down", "7.5 s", "may have changed", _SESSION_ID):
        assert word in result["content"]


def test_a_loop_is_shown_with_its_numbers() -> None:
    loop = ResponseLoop(6, 1500, "empty")
    failure = Failure("UPSTREAM_RESPONSE_LOOP", "it repeats")
    result = _present(_over(TurnStatus.FAILED, failure=failure, response_loop=loop))
    assert result.get("responseLoop") == {"count": 6, "windowMs": 1500, "pattern": "empty"}


@pytest.mark.parametrize(
    ("verdict", "submission", "safety"),
    [
        pytest.param(_over(), Submission.RECORDED, "no_observed_effects", id="as-judged"),
        pytest.param(
            _over(TurnStatus.FAILED, resend_safety="unknown"),
            Submission.REFUSED,
            "not_submitted",
            id="never-taken",
        ),
        pytest.param(Verdict(TurnStatus.RUNNING), Submission.RECORDED, None, id="running"),
    ],
)
def test_whether_to_send_again_is_told_once_the_turn_is_over(
    verdict: Verdict, submission: Submission, safety: str | None
) -> None:
    assert _present(verdict, turn=_turn(submission)).get("resendSafety") == safety


@pytest.mark.parametrize(
    ("verdict", "state", "cleanup"),
    [
        pytest.param(Verdict(TurnStatus.RUNNING), "active", None, id="running"),
        pytest.param(_over(), "stopped", "complete", id="over"),
        pytest.param(_over(execution="unknown"), "unknown", "unconfirmed", id="still-busy"),
    ],
)
def test_execution_and_cleanup_say_only_what_is_known(
    verdict: Verdict, state: str, cleanup: str | None
) -> None:
    result = _present(verdict)
    assert (result.get("executionState"), result.get("cleanup")) == (state, cleanup)


@pytest.mark.parametrize(
    ("verdict", "partial"),
    [
        pytest.param(_over(answer="all"), False, id="whole"),
        pytest.param(_over(answer="half", finish="length"), True, id="length"),
        pytest.param(_over(TurnStatus.CANCELLED, answer="half"), True, id="cancelled"),
        pytest.param(_over(TurnStatus.CANCELLED), False, id="nothing"),
        pytest.param(Verdict(TurnStatus.RUNNING, answer="so far"), True, id="running"),
    ],
)
def test_a_partial_answer_is_marked(verdict: Verdict, *, partial: bool) -> None:
    output = _present(verdict).get("output")
    assert output is not None
    assert output.get("partial") is partial


def test_a_cancelled_call_is_shown_with_its_reason() -> None:
    call = ToolCall("bash", "cancelled", "sleep", "the turn was cancelled; its output so far: a")
    result = _present(_over(TurnStatus.CANCELLED, tool_calls=(call,)))
    assert result.get("toolCalls") == [
        {"tool": "bash", "status": "cancelled", "title": "sleep", "reason": call.reason}
    ]


def test_time_stands_still_once_a_turn_without_an_end_is_over() -> None:
    verdict = _over(TurnStatus.CANCELLED)
    turn = _turn(finished_s=2)
    first, later = (_present(verdict, turn=turn, after_s=s).get("elapsedMs") for s in (5, 500))
    assert first == later == 2000


def test_the_newest_calls_and_the_first_files_are_listed_and_all_are_counted() -> None:
    calls = tuple(ToolCall(f"t{n}", "completed", None, None) for n in range(50))
    files = tuple(f"f{n}" for n in range(500))
    result = _present(_over(tool_calls=calls, files_changed=files))
    assert [call["tool"] for call in result.get("toolCalls", [])] == [
        f"t{n}" for n in range(30, 50)
    ]
    assert result.get("filesChanged") == [f"f{n}" for n in range(200)]
    assert (result.get("toolCallCount"), result.get("filesChangedCount")) == (50, 500)


#: what costs most: control characters take six characters each as JSON
_texts = st.sampled_from(["\x01", "😀", '"', "\\", "a", "é"]).flatmap(
    lambda character: st.sampled_from([0, 1, 300, 5_000, 60_000]).map(lambda n: character * n)
)
_calls = st.builds(ToolCall, tool=_texts, status=st.just("completed"), title=_texts, reason=_texts)
_asks = st.one_of(
    st.builds(
        lambda said: PermissionRequest(
            id="per_" + "x" * 26, session_id=_SESSION_ID, permission=said, patterns=[said] * 30
        ),
        _texts,
    ),
    st.builds(
        lambda said: QuestionRequest.model_validate(
            {
                "id": "que_" + "x" * 26,
                "sessionID": _SESSION_ID,
                "questions": [
                    {
                        "question": said,
                        "header": said,
                        "options": [{"label": said, "description": said}] * 12,
                    }
                ]
                * 12,
            }
        ),
        _texts,
    ),
)
_failures = st.builds(Failure, name=st.just("UPSTREAM_ERROR"), message=_texts, condition=_texts)
_verdicts = st.builds(
    Verdict,
    status=st.sampled_from(TurnStatus),
    answer=_texts,
    finish=_texts,
    failure=st.none() | _failures,
    warnings=_texts.map(lambda said: (("ONE", said), ("TWO", said))),
    tool_calls=_calls.map(lambda call: (call,) * 40),
    usage=st.just(Usage(10**15, 10**15, 10**15, 10**15, 10**15, 1e300)),
    files_changed=_texts.map(lambda said: (said,) * 400),
    pending=_asks.map(lambda ask: (ask,) * 20),
    retry=st.none() | _texts.map(lambda said: RemoteStatus(type="retry", message=said)),
    agent=_texts,
    model=_texts,
    resend_safety=st.sampled_from(["inspect_effects", None]),
    response_loop=st.just(ResponseLoop(10**9, 10**12, "same_failing_call")),
)


@settings(deadline=None, max_examples=30)  # the largest take a while on a busy machine
@given(verdict=_verdicts, directory=_texts, max_chars=st.sampled_from([200, 20_000, 40_000]))
def test_whatever_a_turn_did_both_halves_fit_and_keep_their_ids(
    verdict: Verdict, directory: str, max_chars: int
) -> None:
    """Contract §3: under 45,000 characters, never an id cut, and always said."""
    result = _present(verdict, session=_session(directory), max_chars=max_chars)
    size = len(json.dumps(result, ensure_ascii=False, separators=(",", ":")))
    assert size < MAX_RESULT_CHARS
    assert len(result["content"]) < MAX_RESULT_CHARS
    assert (result.get("sessionId"), result.get("turnId")) == (_SESSION_ID, _TURN_ID)
    assert _SESSION_ID in result["content"], "the text block is complete by itself"
    if result.get("omittedFields"):
        assert result.get("truncated") is True
    for name in ("agent", "model", "directory", "finish"):
        assert len(str(result.get(name, ""))) <= 300
    for ask in result.get("pendingApprovals", []):
        assert ask["id"] == verdict.pending[0].id

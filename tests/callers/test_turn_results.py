"""What a turn's result shows of its verdict, and that it fits whatever the turn did."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from opencode_mcp.callers.argument_kinds import MAX_OUTPUT_CHARS
from opencode_mcp.callers.presenting import present_turn
from opencode_mcp.callers.shown import Shown
from opencode_mcp.callers.sizing import MAX_RESULT_CHARS, written_size
from opencode_mcp.callers.wire import output_schema
from opencode_mcp.engine.effects import ToolCall
from opencode_mcp.engine.failures import Failure
from opencode_mcp.engine.looping import ResponseLoop
from opencode_mcp.engine.outcome import TurnStatus, Verdict
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode.models import PermissionRequest, QuestionRequest
from opencode_mcp.records import Session, Submission, Turn

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import Degraded

_STANDARD = Shown(20_000)
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
    shown: Shown = _STANDARD,
    after_s: float = 5,
) -> Result:
    result = present_turn(
        session or _session(),
        turn or _turn(),
        verdict,
        shown,
        now=_NOW + timedelta(seconds=after_s),
    )
    _SHAPE.validate(result)
    return result


def _over(status: TurnStatus = TurnStatus.COMPLETED, **more: Any) -> Verdict:  # noqa: ANN401 - fields of a verdict
    fields = {"execution": "stopped", "resend_safety": "no_observed_effects", **more}
    return Verdict(status, **fields)


_CALL = ToolCall("bash", "completed", "t", None)
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


def test_lists_that_are_cut_are_named() -> None:
    """Contract §3: `truncated` and `omittedFields`, always."""
    whole = _present(_over(tool_calls=(_CALL,) * 20, files_changed=("f",) * 200))
    assert (whole.get("truncated"), "omittedFields" in whole) == (False, False)
    cut = _present(_over(tool_calls=(_CALL,) * 21, files_changed=("f",) * 201))
    assert cut.get("truncated") is True
    assert sorted(cut.get("omittedFields", [])) == ["filesChanged", "toolCalls"]
    failure = Failure("UPSTREAM_ERROR", "x" * 2001)
    failed = _present(_over(TurnStatus.FAILED, failure=failure))
    assert failed.get("omittedFields") == ["error.message"]


def test_an_answer_is_cut_at_what_the_call_asks_for() -> None:
    answer = "A" * 500 + "Z" * 500
    result = _present(_over(answer=answer), shown=Shown(300))
    shown = result["content"].split("\n\n[session")[0]
    assert written_size(shown) <= 300
    assert shown.startswith("AAA")
    assert shown.endswith("ZZZ")
    assert (result.get("truncated"), result.get("omittedFields")) == (True, ["content"])
    assert result.get("output", {}).get("answerChars") == 1000


def test_an_answer_may_be_as_long_as_a_call_may_ask() -> None:
    answer = "a" * MAX_OUTPUT_CHARS
    result = _present(_over(answer=answer, tool_calls=(_CALL,) * 3), shown=Shown(MAX_OUTPUT_CHARS))
    assert answer in result["content"]
    assert result.get("truncated") is False


def test_compact_leaves_out_details_and_keeps_what_is_to_be_acted_on() -> None:
    """Contract §2: ours is which fields; what a caller did not want is not called omitted."""
    failure = Failure("UPSTREAM_ERROR", "slow down")
    verdict = _over(
        TurnStatus.FAILED,
        answer="half",
        failure=failure,
        tool_calls=(_CALL,) * 50,
        files_changed=("f",) * 500,
        warnings=(("PARTIAL_ANSWER", "it is not all"),),
        agent="build",
        model="a/b",
        finish="stop",
    )
    assert set(_present(verdict, shown=Shown(20_000, "compact"))) == {
        *("kind", "status", "content", "sessionId", "threadId", "turnId", "turn"),
        *("executionState", "cleanup", "resendSafety", "error", "hint", "truncated"),
        *("toolCallCount", "pendingApprovalCount", "filesChangedCount"),
    }
    compact = _present(verdict, shown=Shown(20_000, "compact"))
    assert compact["content"] == _present(verdict)["content"]
    assert "PARTIAL_ANSWER" in compact["content"]
    assert (compact.get("toolCallCount"), compact.get("filesChangedCount")) == (50, 500)
    assert compact.get("truncated") is False


def test_compact_keeps_what_waits_for_an_answer() -> None:
    ask = PermissionRequest(id="per_1", session_id=_SESSION_ID, permission="bash", patterns=["ls"])
    waiting = Verdict(TurnStatus.WAITING, pending=(ask,))
    compact = _present(waiting, shown=Shown(20_000, "compact"))
    assert compact.get("pendingApprovals") == _present(waiting).get("pendingApprovals")


def test_what_waits_is_told_shorter_before_any_of_it_is_left_out() -> None:
    """Ours: an id is what an answer needs; labels are answers themselves."""
    options = [{"label": f"label {n}", "description": "d" * 300} for n in range(10)]
    question = {"question": "q" * 300, "header": "h", "options": options}
    ask = QuestionRequest.model_validate(
        {"id": "que_1", "sessionID": _SESSION_ID, "questions": [question] * 3}
    )
    asks = tuple(ask.model_copy(update={"id": f"que_{n}"}) for n in range(10))
    few = _present(Verdict(TurnStatus.WAITING, pending=asks[:1]))
    assert few.get("truncated") is False
    many = _present(Verdict(TurnStatus.WAITING, pending=asks))
    assert (many.get("truncated"), many.get("omittedFields")) == (True, ["pendingApprovals"])
    listed = many.get("pendingApprovals", [])
    assert [one["id"] for one in listed] == [ask.id for ask in asks]
    assert all(f"Waiting for an answer {ask.id}" in many["content"] for ask in asks)
    first = listed[0].get("questions", [])[0]
    assert first.get("options") == [{"label": f"label {n}"} for n in range(4)]


def test_an_outage_is_told_within_the_bounds_too() -> None:
    reason: Degraded = {"state": "degraded", "reason": "r" * 300}
    result = present_turn(
        _session(),
        _turn(),
        Verdict(TurnStatus.RUNNING, answer="\x01" * 60_000),
        Shown(MAX_OUTPUT_CHARS),
        now=_NOW,
        upstream_read=reason,
    )
    _SHAPE.validate(result)
    assert (result.get("executionState"), result.get("upstreamRead")) == ("unknown", reason)
    assert len(json.dumps(result)) < MAX_RESULT_CHARS

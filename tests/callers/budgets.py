"""Turns, sessions and asks as large as they come, and the bounds that each result stays in."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import Phase as Step
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from opencode_mcp.callers.shown import Shown
from opencode_mcp.callers.sizing import MAX_RESULT_CHARS, SPARE_CHARS, serialized_size
from opencode_mcp.callers.wire import output_schema
from opencode_mcp.engine.effects import ToolCall, Usage
from opencode_mcp.engine.failures import Failure
from opencode_mcp.engine.looping import ResponseLoop
from opencode_mcp.engine.outcome import AskTimes, TurnStatus, Verdict
from opencode_mcp.engine.structured import Structured
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode.models import PermissionRequest, QuestionRequest, RemoteStatus
from opencode_mcp.records import Session, Submission, Turn

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result

_SHAPE = Draft202012Validator(output_schema())
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
#: the longest id that a caller may send (contract §1)
LONGEST_ID = "ses_" + "a" * 196

#: what costs most: control characters take six characters each as JSON
TEXTS = st.sampled_from(["\x01", "😀", '"', "\\", "a", "é", "\u2028", "line\n"]).flatmap(
    lambda character: st.sampled_from([0, 1, 40, 300, 5_000, 60_000]).map(lambda n: character * n)
) | st.text(max_size=50)
IDS = st.sampled_from(["a" * 26, "b" * 190, "c" * 60])


def _permission(said: str, name: str) -> PermissionRequest:
    return PermissionRequest(
        id=f"per_{name}", session_id=f"ses_{name}", permission=said, patterns=[said] * 30
    )


def _question(said: str, name: str) -> QuestionRequest:
    options = [{"label": said, "description": said}] * 12
    questions = [{"question": said, "header": said, "options": options}] * 12
    return QuestionRequest.model_validate(
        {"id": f"que_{name}", "sessionID": f"ses_{name}", "questions": questions}
    )


_asks = st.builds(_permission, TEXTS, IDS) | st.builds(_question, TEXTS, IDS)
_calls = st.builds(ToolCall, tool=TEXTS, status=st.just("completed"), title=TEXTS, reason=TEXTS)
_counts = st.sampled_from([1, 7, 2_000])
_structured = st.builds(
    lambda said: Structured("valid", json=json.dumps({"said": said})), TEXTS
) | st.builds(lambda said: Structured("invalid", code="SCHEMA_MISMATCH", message=said[:300]), TEXTS)
VERDICTS = st.builds(
    Verdict,
    status=st.sampled_from(TurnStatus),
    answer=TEXTS,
    finish=TEXTS,
    failure=st.none()
    | st.builds(Failure, name=st.just("UPSTREAM_ERROR"), message=TEXTS, condition=TEXTS),
    warnings=st.builds(lambda said, n: ((said[:20], said),) * n, TEXTS, _counts),
    tool_calls=st.builds(lambda call, n: (call,) * n, _calls, _counts),
    usage=st.just(Usage(10**15, 10**15, 10**15, 10**15, 10**15, 1e300)),
    files_changed=st.builds(lambda said, n: (said,) * n, TEXTS, _counts),
    pending=st.builds(lambda ask, n: (ask,) * n, _asks, _counts) | st.just(()),
    ask_times=st.builds(
        lambda name: {f"per_{name}": AskTimes(NOW, NOW), f"que_{name}": AskTimes(NOW, NOW)},
        IDS,
    ),
    retry=st.none() | st.builds(lambda said: RemoteStatus(type="retry", message=said), TEXTS),
    agent=TEXTS,
    model=TEXTS,
    resend_safety=st.sampled_from(["inspect_effects", None]),
    structured=st.none() | _structured,
    response_loop=st.just(ResponseLoop(10**9, 10**12, "same_failing_call")),
)
SESSIONS = st.builds(
    lambda session_id, said: replace(a_session(session_id), directory=said, title=said),
    st.sampled_from([LONGEST_ID, "ses_" + "d" * 26]),
    TEXTS,
)
SHOWN = st.builds(
    Shown, st.sampled_from([200, 20_000, 40_000]), st.sampled_from(["standard", "compact"])
)
THOROUGH = settings(
    max_examples=60,
    # to make the largest smaller takes longer than a test may
    phases=set(Step) - {Step.shrink, Step.explain},
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def a_session(session_id: str = LONGEST_ID) -> Session:
    return Session(session_id, "local", "i", "/repo", Phase.ACTIVE, 1, NOW, NOW)


def a_turn(session_id: str) -> Turn:
    return Turn(session_id, 3, "msg_" + "b" * 60, None, Submission.RECORDED, NOW, NOW)


def check(result: Result, *, spare: int = SPARE_CHARS) -> None:
    """Check the bounds of both halves, the shape, and that what was lost is named."""
    _SHAPE.validate(result)
    assert serialized_size(result) < MAX_RESULT_CHARS - spare + 1
    assert len(json.dumps(result["content"])) < MAX_RESULT_CHARS
    assert json.loads(json.dumps(result, ensure_ascii=False).encode()) == result
    assert bool(result.get("omittedFields")) == bool(result.get("truncated"))

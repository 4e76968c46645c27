"""What holds for every turn, whatever OpenCode says of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_mcp.engine.outcome import Evidence, Unread, judge
from opencode_mcp.engine.steps import is_finished_while_listed_as_busy
from opencode_mcp.opencode.models import Message, RemoteStatus
from opencode_mcp.records import StopReason
from tests.engine.make import (
    ABORTED,
    ASK,
    START_MS,
    assistant,
    error,
    go_on,
    invalid,
    summary,
    text,
    tool,
    user,
)

_parts = st.lists(
    st.one_of(
        st.sampled_from(["", " ", "hello", "<html>"]).map(text),
        st.sampled_from(["pending", "running", "completed", "error"]).map(tool),
        st.just(tool("completed", "write", metadata={"filepath": "/repo/sub/a.py"})),
        st.just(tool("error", metadata={"interrupted": True, "output": "so far"})),
        st.just(invalid()),
    ),
    max_size=3,
)
_steps = st.builds(
    lambda parts, finish, completed, fault: assistant(
        *parts, finish=finish, completed=completed, error=fault
    ),
    _parts,
    st.sampled_from([None, "stop", "length", "tool-calls", "unknown", "content-filter", "eos"]),
    st.booleans(),
    st.sampled_from([None, None, None, ABORTED, error("APIError", statusCode=500)]),
)
_middles = st.one_of(
    _steps.map(lambda step: [step]),
    st.builds(summary),
    st.builds(lambda: [*summary(), go_on()]),
)
_turns = st.one_of(
    st.builds(list[Message]),
    st.lists(_middles, max_size=4).map(
        lambda groups: [user(), *(message for group in groups for message in group)]
    ),
)
_statuses = st.sampled_from([None, RemoteStatus(type="busy"), RemoteStatus(type="retry")])
_evidence = st.builds(
    Evidence,
    messages=_turns,
    status=_statuses,
    pending=st.sampled_from([(), (ASK,)]),
    stop_reason=st.sampled_from([None, *StopReason]),
    settled=st.booleans(),
    overdue_busy=st.booleans(),
    unread=st.sampled_from([None, *Unread]),
    session_error=st.sampled_from([None, "it broke"]),
)
#: a turn of somebody else's, long after
_LATER_MS = START_MS + 3_600_000


def _later_turn() -> list[Message]:
    return [
        user(at_ms=_LATER_MS),
        assistant(
            text("another answer"), tool("completed"), finish="tool-calls", at_ms=_LATER_MS + 1
        ),
        assistant(text("its end"), at_ms=_LATER_MS + 500),
    ]


@given(_evidence)
def test_a_turn_is_never_over_while_opencode_says_busy(evidence: Evidence) -> None:
    """The one exception is case B07: a finished answer for longer than the settle time."""
    verdict = judge(evidence)
    if evidence.status is not None and verdict.is_over:
        assert evidence.overdue_busy
        assert "STILL_BUSY" in [code for code, _ in verdict.warnings]
        assert verdict.execution == "unknown"


@given(_evidence)
def test_no_tool_call_of_a_turn_that_is_over_is_pending_or_running(evidence: Evidence) -> None:
    verdict = judge(evidence)
    if verdict.is_over:
        assert not {"pending", "running"} & {call.status for call in verdict.tool_calls}


@given(_evidence)
def test_a_settled_turn_is_over(evidence: Evidence) -> None:
    if evidence.status is None and evidence.settled:
        assert judge(evidence).is_over


@given(_evidence)
def test_over_stays_over_when_it_settles(evidence: Evidence) -> None:
    verdict = judge(evidence)
    if verdict.is_over and evidence.status is None:
        later = Evidence(
            evidence.messages,
            None,
            (),
            evidence.stop_reason,
            settled=True,
            unread=evidence.unread,
            session_error=evidence.session_error,
        )
        assert judge(later).status == verdict.status


@given(_evidence)
def test_later_turns_change_nothing(evidence: Evidence) -> None:
    """Once a step of the turn exists; a prompt beside one that never began joins it (facts 2.8)."""
    if not any(m.info.role == "assistant" for m in evidence.messages):
        return
    if evidence.messages[-1].info.role == "user" or evidence.messages[-1].info.summary is True:
        return  # OpenCode was about to go on: a prompt there is answered together with it
    more = Evidence(
        [*evidence.messages, *_later_turn()],
        evidence.status,
        evidence.pending,
        evidence.stop_reason,
        evidence.settled,
        overdue_busy=evidence.overdue_busy,
        unread=evidence.unread,
        session_error=evidence.session_error,
    )
    assert judge(more) == judge(evidence)


@given(_evidence)
def test_what_a_verdict_says_agrees_with_itself(evidence: Evidence) -> None:
    verdict = judge(evidence)
    assert (verdict.failure is not None) == (verdict.status in {"failed", "timeout"})
    assert (verdict.resend_safety is not None) == verdict.is_over
    assert (verdict.execution == "active") == (not verdict.is_over)
    assert not (verdict.is_over and verdict.pending)
    if verdict.status in {"cancelled", "timeout"} and evidence.stop_reason is None:
        assert "ABORTED_ELSEWHERE" in [code for code, _ in verdict.warnings]


@given(_evidence)
def test_judging_twice_gives_the_same(evidence: Evidence) -> None:
    assert judge(evidence) == judge(evidence)


@pytest.mark.parametrize(
    ("messages", "is_finished"),
    [
        pytest.param([user(), assistant(text("hi"))], True, id="a-final-answer"),
        pytest.param([user(), assistant(text("hi"), finish="length")], True, id="a-cut-one"),
        pytest.param([user(), assistant(tool("completed"))], False, id="tools-to-go-on-from"),
        pytest.param([user(), assistant(finish=None, completed=False)], False, id="unfinished"),
        pytest.param([user(), assistant(text("x"), error=ABORTED)], False, id="an-error"),
        pytest.param([user(), assistant(text("hi")), *summary()], False, id="a-compaction-after"),
        pytest.param([user(), assistant(text("hi")), user()], False, id="a-prompt-after"),
        pytest.param([user()], False, id="no-step"),
        pytest.param([], False, id="nothing"),
    ],
)
def test_a_finished_answer_under_a_busy_status_is_recognised(
    messages: list[Message], *, is_finished: bool
) -> None:
    """Case B07: from the moment on that this holds its observer measures the settle time."""
    assert is_finished_while_listed_as_busy(messages) is is_finished

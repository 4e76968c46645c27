"""What did this turn come to? One pure function from evidence to a verdict.

An idle event proves nothing by itself: events come after it, the first idle of an aborted turn
comes before its message carries the error (facts 3.5, 3.8), and an abort during a retry leaves no
trace at all (facts 4.4). So a turn is judged by its messages, by what OpenCode's status said, and
by what we asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from opencode_mcp.engine import effects, failures
from opencode_mcp.engine.effects import ToolCall, Usage
from opencode_mcp.engine.looping import ResponseLoop, find_loop
from opencode_mcp.engine.notices import Notice, warnings_of
from opencode_mcp.engine.steps import answer_of, is_final, own_messages, steps_of
from opencode_mcp.records import StopReason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from opencode_mcp.engine.failures import Failure
    from opencode_mcp.engine.structured import Structured
    from opencode_mcp.opencode.models import (
        Message,
        PermissionRequest,
        QuestionRequest,
        RemoteStatus,
    )

ResendSafety: TypeAlias = Literal["no_observed_effects", "inspect_effects", "unknown"]
ExecutionState: TypeAlias = Literal["active", "stopped", "unknown"]


class TurnStatus(StrEnum):
    """The statuses of a turn that callers see (contract §3)."""

    RUNNING = "running"
    WAITING = "waiting_for_approval"
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"


_GOING_ON = frozenset({TurnStatus.RUNNING, TurnStatus.WAITING, TurnStatus.STOPPING})


class Unread(StrEnum):
    """Which part of a turn could not be read, because it is too large."""

    NEWEST = "newest"  # the newest message: how the turn ended cannot be seen
    EARLIER = "earlier"  # only messages before the newest: what they did cannot be seen


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of a turn at one moment."""

    #: the turn's messages, oldest first; empty while the prompt is not visible yet
    messages: Sequence[Message]
    #: the session's entry in OpenCode's status; None: idle, or not started yet (facts 1.7)
    status: RemoteStatus | None
    #: the permissions and questions that wait, of the session and its descendants
    pending: Sequence[PermissionRequest | QuestionRequest]
    stop_reason: StopReason | None
    #: idle for so long, over several reads, that nothing more will come
    settled: bool
    #: case B07: the status has said busy for the observer's settle time (some 3 s) although the
    #: newest message was an answer that ends the turn (`steps.is_finished_while_listed_as_busy`)
    overdue_busy: bool = False
    #: what could not be read of the turn; None: all was
    unread: Unread | None = None
    #: what OpenCode's last `session.error` event of this turn said, if one was heard: for a wrong
    #: model it is the only report (facts 2.4)
    session_error: str | None = None


@dataclass(frozen=True, slots=True)
class AskTimes:
    """When an ask was first seen, and when it will be rejected if nobody answers."""

    asked_at: datetime
    deadline_at: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a turn came to, or where it stands."""

    status: TurnStatus
    #: the last step's text, or, where it has none, the newest text there is
    answer: str = ""
    finish: str | None = None
    failure: Failure | None = None
    warnings: tuple[tuple[str, str], ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    files_changed: tuple[str, ...] = ()
    pending: tuple[PermissionRequest | QuestionRequest, ...] = ()
    #: of what is pending, by id; empty where nobody keeps the turn
    ask_times: Mapping[str, AskTimes] = field(default_factory=dict)
    retry: RemoteStatus | None = None
    agent: str | None = None
    model: str | None = None
    ended_at: datetime | None = None
    #: whether something of the turn runs in OpenCode; `unknown`: it says busy after the answer
    execution: ExecutionState = "active"
    #: whether the prompt may be sent again; None while the turn goes on
    resend_safety: ResendSafety | None = None
    response_loop: ResponseLoop | None = None
    #: what came of the turn's `output-schema`; None: it has none, or was not judged (yet)
    structured: Structured | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of the turn."""
        return self.status not in _GOING_ON

    @property
    def has_whole_answer(self) -> bool:
        """Whether the answer is all that there would have been."""
        return self.status is TurnStatus.COMPLETED and self.finish != "length"


@dataclass(frozen=True, slots=True)
class _End:
    """How a turn ended, or `status` alone while it goes on."""

    status: TurnStatus
    failure: Failure | None = None
    loop: ResponseLoop | None = None
    #: an abort that was not ours
    by_others: bool = False


_ABORTED = "MessageAbortedError"
#: how an aborted fiber speaks where it gets no MessageAbortedError ("All fibers interrupted")
_INTERRUPTED = re.compile(r"abort|interrupt", re.IGNORECASE)
_CUT_WORDS = {
    TurnStatus.CANCELLED: "the turn was cancelled",
    TurnStatus.TIMEOUT: "the turn reached its time limit",
    TurnStatus.FAILED: "the turn failed before this call was done",
}


def judge(evidence: Evidence) -> Verdict:
    """Return what the turn came to, by its evidence alone."""
    messages = own_messages(evidence.messages, stopped=evidence.stop_reason is not None)
    steps = steps_of(messages)
    end = _find_end(evidence, messages, steps)
    over = end.status not in _GOING_ON
    last = steps[-1].info if steps else None
    calls = effects.tool_calls(messages, cut=_CUT_WORDS.get(end.status), over=over)
    return Verdict(
        status=end.status,
        answer=answer_of(steps)[0],
        finish=last.finish if last else None,
        failure=end.failure,
        warnings=_warnings(evidence, end, steps, calls) if over else (),
        tool_calls=calls,
        usage=effects.usage_of(messages),
        files_changed=effects.files_changed(messages),
        pending=() if over else tuple(evidence.pending),
        retry=evidence.status if evidence.status and evidence.status.type == "retry" else None,
        agent=last.agent if last else None,
        model=f"{last.provider_id}/{last.model_id}" if last else None,
        ended_at=last.time.completed if last and over else None,
        execution=_execution(evidence, over=over),
        resend_safety=_resend_safety(evidence, messages) if over else None,
        response_loop=end.loop,
    )


def _find_end(evidence: Evidence, messages: Sequence[Message], steps: Sequence[Message]) -> _End:
    """Find out whether the turn is over, and how."""
    last = steps[-1] if steps else None
    if evidence.status is not None and not evidence.overdue_busy:
        return _going_on(evidence)
    newest_unread = evidence.unread is Unread.NEWEST
    if last is not None and not newest_unread and (last.info.error or is_final(last)):
        return _ended(evidence, steps)
    if evidence.status is not None or not evidence.settled:
        return _going_on(evidence)
    if evidence.stop_reason is not None:  # an abort during a retry leaves no trace (facts 4.4)
        return _stopped(evidence.stop_reason, steps)
    if newest_unread:
        return _End(TurnStatus.FAILED, failures.TOO_LARGE)
    return _died(evidence, messages, steps)


def _going_on(evidence: Evidence) -> _End:
    if evidence.stop_reason is not None:
        return _End(TurnStatus.STOPPING)
    return _End(TurnStatus.WAITING if evidence.pending else TurnStatus.RUNNING)


def _ended(evidence: Evidence, steps: Sequence[Message]) -> _End:
    """Judge a turn whose last step says how it ended. What it says wins over what we asked for.

    A turn that completed as we reached for the stop has completed (facts 4.7); one that carries an
    abort's error was cut, even where it has a finish as well (case 42).
    """
    info = steps[-1].info
    error = info.error
    if error is not None and _is_abort(evidence, error.name, error.message):
        if evidence.stop_reason is None:
            return _End(TurnStatus.CANCELLED, by_others=True)
        return _stopped(evidence.stop_reason, steps)
    if error is not None:
        at = info.time.completed or info.time.created
        return _End(TurnStatus.FAILED, failures.failure_of(error, at))
    if info.finish == "content-filter":
        return _End(TurnStatus.FAILED, failures.CONTENT_FILTERED)
    return _completed(steps)


def _is_abort(evidence: Evidence, name: str, message: str) -> bool:
    if name == _ABORTED:
        return True
    asked = evidence.stop_reason is not None
    return asked and name == "UnknownError" and bool(_INTERRUPTED.search(message))


def _completed(steps: Sequence[Message]) -> _End:
    """Judge a turn that came to its end: without text and without a call it came to nothing."""
    if not answer_of(steps)[0] and not effects.has_effects(steps):
        return _End(TurnStatus.FAILED, failures.EMPTY)
    return _End(TurnStatus.COMPLETED)


def _stopped(reason: StopReason, steps: Sequence[Message]) -> _End:
    match reason:
        case StopReason.TIMEOUT:
            return _End(TurnStatus.TIMEOUT, failures.OUT_OF_TIME)
        case StopReason.LOOP:
            loop = find_loop(steps, limit=1)
            return _End(TurnStatus.FAILED, failures.looped(loop), loop)
        case StopReason.CANCEL | StopReason.END:
            return _End(TurnStatus.CANCELLED)


def _died(evidence: Evidence, messages: Sequence[Message], steps: Sequence[Message]) -> _End:
    """Judge a turn that is idle for good without a message that says how it ended."""
    last = steps[-1].info if steps else None
    if last is not None and last.finish == "unknown" and answer_of(steps[-1:])[0]:
        return _completed(steps)  # 1.18.33 would ask again; that none came makes it the end
    seen = bool(messages)
    return _End(TurnStatus.FAILED, failures.incomplete(last, evidence.session_error, seen=seen))


def _warnings(
    evidence: Evidence, end: _End, steps: Sequence[Message], calls: Sequence[ToolCall]
) -> tuple[tuple[str, str], ...]:
    answer, is_last = answer_of(steps)
    completed = end.status is TurnStatus.COMPLETED
    finish = steps[-1].info.finish if completed else None
    holds = {
        Notice.TRUNCATED: finish == "length",
        Notice.PARTIAL_ANSWER: bool(answer) and not completed,
        Notice.EARLIER_TEXT: bool(answer) and completed and not is_last,
        Notice.ABORTED_ELSEWHERE: end.by_others,
        Notice.SESSION_ENDED: evidence.stop_reason is StopReason.END,
        Notice.PROCESS_MAY_LIVE: effects.may_leave_a_process(calls),
        Notice.STILL_BUSY: evidence.status is not None,
        Notice.TOO_LARGE: evidence.unread is not None,
    }
    return warnings_of([notice for notice, does in holds.items() if does], finish)


def _execution(evidence: Evidence, *, over: bool) -> ExecutionState:
    if not over:
        return "active"
    return "unknown" if evidence.status is not None or not evidence.messages else "stopped"


def _resend_safety(evidence: Evidence, messages: Sequence[Message]) -> ResendSafety:
    if evidence.status is not None or not messages:
        return "unknown"
    changed = effects.may_have_changed_something(messages) or effects.files_changed(messages)
    return "inspect_effects" if changed or evidence.unread else "no_observed_effects"

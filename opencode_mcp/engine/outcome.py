"""What did this turn come to? One pure function from evidence to a verdict.

An idle event proves nothing by itself: events come after it, the first idle of an aborted turn
comes before its message carries the error (facts 3.5, 3.8), and an abort during a retry leaves no
trace at all (facts 4.4). So a turn is judged by its messages, by what OpenCode's status said, and
by what we asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from opencode_mcp.records import StopReason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from opencode_mcp.opencode.models import (
        Message,
        MessageError,
        PermissionRequest,
        QuestionRequest,
        RemoteStatus,
    )


class TurnStatus(StrEnum):
    """The statuses of a turn that callers see (contract §3)."""

    RUNNING = "running"
    WAITING = "waiting_for_approval"
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"


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


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a turn failed: `name` is the contract's `error.name`."""

    name: str
    message: str
    status_code: int | None = None
    retryable: bool = False
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool, as its part tells it."""

    tool: str
    status: str
    title: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of all steps of a turn."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class AskTimes:
    """When an ask was first seen, and when it will be rejected if nobody answers."""

    asked_at: datetime
    deadline_at: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a turn came to, or where it stands."""

    status: TurnStatus
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

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of the turn."""
        return self.status not in {TurnStatus.RUNNING, TurnStatus.WAITING, TurnStatus.STOPPING}


_ABORTED = "MessageAbortedError"
_STOPPED_AS = {
    StopReason.CANCEL: TurnStatus.CANCELLED,
    StopReason.END: TurnStatus.CANCELLED,
    StopReason.TIMEOUT: TurnStatus.TIMEOUT,
}
_GOOD_FINISHES = frozenset({"stop", "length"})


def judge(evidence: Evidence) -> Verdict:
    """Return what the turn came to, by its evidence alone."""
    answers = [
        m for m in evidence.messages if m.info.role == "assistant" and m.info.summary is not True
    ]
    last = answers[-1] if answers else None
    if evidence.status is not None:
        status, failure = _running(evidence), None
    elif last is not None and (last.info.error is not None or _is_final(last)):
        status, failure = _ended(evidence, last, has_effects=_has_effects(answers))
    elif not evidence.settled:
        status, failure = _running(evidence), None
    else:
        status, failure = _cut(evidence, last)
    over = status not in {TurnStatus.RUNNING, TurnStatus.WAITING, TurnStatus.STOPPING}
    return Verdict(
        status=status,
        answer=text_of(last) if last else "",
        finish=last.info.finish if last else None,
        failure=failure,
        warnings=_warnings(last) if over else (),
        tool_calls=_tool_calls(answers, over=over),
        usage=_usage(answers),
        files_changed=_files(evidence.messages),
        pending=() if over else tuple(evidence.pending),
        retry=evidence.status if evidence.status and evidence.status.type == "retry" else None,
        agent=last.info.agent if last else None,
        model=f"{last.info.provider_id}/{last.info.model_id}" if last else None,
        ended_at=last.info.time.completed if last and over else None,
    )


def text_of(message: Message) -> str:
    """Return what a message says: its text parts, without those that OpenCode put in itself."""
    return "\n\n".join(
        part.text
        for part in message.parts
        if part.type == "text" and part.text and not part.synthetic and not part.ignored
    )


def _is_final(message: Message) -> bool:
    """Whether a message ends its turn: complete, and not because tools were called."""
    info = message.info
    return info.time.completed is not None and info.finish not in {None, "tool-calls"}


def _running(evidence: Evidence) -> TurnStatus:
    if evidence.stop_reason is not None:
        return TurnStatus.STOPPING
    return TurnStatus.WAITING if evidence.pending else TurnStatus.RUNNING


def _ended(
    evidence: Evidence, last: Message, *, has_effects: bool
) -> tuple[TurnStatus, Failure | None]:
    """Judge a turn whose last message says how it ended."""
    error, finish = last.info.error, last.info.finish
    if error is not None and error.name == _ABORTED:
        reason = evidence.stop_reason or StopReason.CANCEL  # aborted by somebody else: cut short
        return _stopped(reason)
    if error is not None:
        return TurnStatus.FAILED, _provider_failure(error)
    if finish == "content-filter":
        text = "The provider's content filter stopped the answer."
        return TurnStatus.FAILED, Failure("UPSTREAM_ERROR", text, condition="content-filter")
    if not text_of(last).strip() and not has_effects:
        text = "The model answered with nothing: no text and no tool call."
        return TurnStatus.FAILED, Failure("EMPTY_RESPONSE", text, retryable=True)
    return TurnStatus.COMPLETED, None


def _stopped(reason: StopReason) -> tuple[TurnStatus, Failure | None]:
    if reason is not StopReason.TIMEOUT:
        return _STOPPED_AS[reason], None
    text = "The turn reached its time limit and was stopped."
    return TurnStatus.TIMEOUT, Failure("TURN_INCOMPLETE", text, condition="timeout")


def _cut(evidence: Evidence, last: Message | None) -> tuple[TurnStatus, Failure | None]:
    """Judge a turn that is idle for good without a message that says how it ended."""
    if evidence.stop_reason is not None:  # an abort during a retry leaves no trace (facts 4.4)
        return _stopped(evidence.stop_reason)
    if not evidence.messages:
        text = "OpenCode took the prompt and never showed it: no turn ran."
    elif last is None:  # a wrong model or a provider that is not set up: facts 2.4
        text = (
            "OpenCode stored the prompt and ended without an answer. Usual causes: the model or"
            " its provider is not set up in OpenCode, or OpenCode stopped."
        )
    elif last.info.finish == "tool-calls":  # e.g. a rejected permission: facts 5.3
        text = "The turn ended after a tool call, without an answer (a rejected permission does so)"
    else:
        text = "The turn stopped in the middle of an answer: its OpenCode was killed or restarted."
    return TurnStatus.FAILED, Failure("TURN_INCOMPLETE", text)


def _provider_failure(error: MessageError) -> Failure:
    return Failure(
        name="UPSTREAM_ERROR",
        message=error.message,
        status_code=error.status_code,
        retryable=error.is_retryable,
        condition=error.name,
    )


def _has_effects(answers: Sequence[Message]) -> bool:
    return any(part.type == "tool" for message in answers for part in message.parts)


def _warnings(last: Message | None) -> tuple[tuple[str, str], ...]:
    finish = last.info.finish if last else None
    if finish == "length":
        return (("TRUNCATED", "The model reached its output limit; the answer is cut."),)
    if finish is None or finish in _GOOD_FINISHES | {"tool-calls", "content-filter"}:
        return ()
    return (("NONSTANDARD_FINISH", f"The provider ended the answer with {finish[:100]!r}."),)


def _tool_calls(answers: Sequence[Message], *, over: bool) -> tuple[ToolCall, ...]:
    """List the tool calls. After the end none is shown as running (facts 9.2, contract 2.2)."""
    calls = []
    for part in (part for message in answers for part in message.parts if part.type == "tool"):
        status = part.state.status if part.state else "pending"
        reason = part.state.error if part.state else None
        if over and status in {"pending", "running"}:
            status, reason = "cancelled", "the turn ended before this call did"
        calls.append(
            ToolCall(part.tool or "?", status, part.state.title if part.state else None, reason)
        )
    return tuple(calls)


def _usage(answers: Sequence[Message]) -> Usage:
    infos = [message.info for message in answers]
    return Usage(
        input=sum(i.tokens.input for i in infos),
        output=sum(i.tokens.output for i in infos),
        reasoning=sum(i.tokens.reasoning for i in infos),
        cache_read=sum(i.tokens.cache.read for i in infos),
        cache_write=sum(i.tokens.cache.write for i in infos),
        cost=sum(i.cost for i in infos),
    )


def _files(messages: Sequence[Message]) -> tuple[str, ...]:
    """List the files that OpenCode's own summary of the turn names, each once."""
    seen: dict[str, None] = {}
    for message in messages:
        summary = message.info.summary
        if message.info.role == "user" and summary is not None and not isinstance(summary, bool):
            seen.update(dict.fromkeys(diff.file for diff in summary.diffs if diff.file))
    return tuple(seen)

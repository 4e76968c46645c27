"""What the engine tells whoever operates this server: each happening as a log line and a count.

One function a happening, so that the two never differ. Each names its own ids: who logs may be a
task that works on much else.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from opencode_mcp import metrics
from opencode_mcp.engine.outcome import TurnStatus
from opencode_mcp.log_events import Event, tell, tell_content
from opencode_mcp.opencode.models import PermissionRequest
from opencode_mcp.records import AskKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opencode_mcp.engine.answers import Ask
    from opencode_mcp.engine.ends import Ended
    from opencode_mcp.engine.outcome import Verdict
    from opencode_mcp.records import AnsweredBy, EndAction, Session, StopReason, Turn

log = logging.getLogger(__name__)


def ids_of(session: Session, turn: Turn | None = None) -> dict[str, str | None]:
    """Return what a line about a session names, and about one of its turns."""
    turn_id = None if turn is None else turn.message_id
    return {"session_id": session.id, "turn_id": turn_id, "owner": session.owner}


def session_started(session: Session) -> None:
    """Tell that a session was created in OpenCode and is tracked."""
    tell(
        log,
        Event.SESSION_STARTED,
        **ids_of(session),
        instance_id=session.instance_id,
        directory=session.directory,
        sandbox=session.sandbox.value,
        approval_policy=session.approval_policy.value,
    )


def turn_submitted(session: Session, turn: Turn, prompt: str) -> None:
    """Tell that OpenCode has the prompt."""
    ids = ids_of(session, turn)
    limit_s = round((turn.deadline_at - turn.created_at).total_seconds())
    tell(log, Event.TURN_SUBMITTED, **ids, turn=turn.number, limit_s=limit_s)
    tell_content(Event.PROMPT, prompt, **ids)


def turn_over(session: Session, turn: Turn, verdict: Verdict, elapsed_s: float) -> None:
    """Tell that a turn is over; only the process that answers for it does."""
    ids = ids_of(session, turn)
    failure = verdict.failure
    failed = verdict.status is TurnStatus.FAILED and failure is not None
    metrics.turn_over(verdict.status.value, failure.name if failed and failure else "", elapsed_s)
    tell(
        log,
        Event.TURN_OVER,
        **ids,
        turn=turn.number,
        outcome=verdict.status.value,
        error_name=failure.name if failure else None,
        elapsed_ms=round(elapsed_s * 1000),
    )
    if verdict.answer:
        tell_content(Event.ANSWER, verdict.answer, **ids)


def turn_over_unseen(session: Session, turn: Turn, elapsed_s: float) -> None:
    """Tell that a turn was over before anybody of ours could look: nobody knows how it ended."""
    metrics.turn_over("unknown", "", elapsed_s)
    ms = round(elapsed_s * 1000)
    tell(
        log,
        Event.TURN_OVER,
        **ids_of(session, turn),
        turn=turn.number,
        outcome="unknown",
        elapsed_ms=ms,
    )


def stop_asked(session: Session, turn: Turn, reason: StopReason) -> None:
    """Tell that it was written down that the turn is to stop, and why."""
    tell(log, Event.STOP_ASKED, **ids_of(session, turn), reason=reason.value)


def ask_seen(ids: Mapping[str, str | None], ask: Ask) -> None:
    """Tell that OpenCode asks for something."""
    tell(log, Event.APPROVAL_ASKED, **ids, approval_id=ask.id, kind=kind_of(ask).value)


def ask_answered(ids: Mapping[str, str | None], ask: Ask, by: AnsweredBy, *, allowed: bool) -> None:
    """Tell that an ask was answered, or rejected without anybody's word."""
    metrics.approval_answered(kind_of(ask), by, allowed=allowed)
    tell(
        log,
        Event.APPROVAL_ANSWERED,
        **ids,
        approval_id=ask.id,
        kind=kind_of(ask).value,
        decision="allow" if allowed else "reject",
        by=by.value,
    )


def kind_of(ask: Ask) -> AskKind:
    """Return what is asked for."""
    return AskKind.PERMISSION if isinstance(ask, PermissionRequest) else AskKind.QUESTION


def end_accepted(session: Session, why: str) -> None:
    """Tell that it was written down that the session ends. `why`: `asked`, `idle` or `exit`."""
    action = None if session.ending is None else session.ending.action.value
    tell(log, Event.END_ACCEPTED, **ids_of(session), action=action, why=why)


def end_confirmed(session: Session, ended: Ended, elapsed_s: float) -> None:
    """Tell that this process has ended a session."""
    metrics.end_confirmed(ended.action, elapsed_s)
    tell(
        log,
        Event.END_CONFIRMED,
        **ids_of(session),
        action=ended.action.value,
        elapsed_ms=round(elapsed_s * 1000),
        aborted_running_turn=ended.aborted_running_turn,
        rejected_permissions=ended.rejected_permissions,
        rejected_questions=ended.rejected_questions,
        ended_subsessions=ended.ended_subsessions,
    )


def end_unconfirmed(ids: Mapping[str, str | None], action: EndAction, why: str) -> None:
    """Tell that an end was not confirmed in its time; it is tried again."""
    metrics.end_unconfirmed(action)
    tell(log, Event.END_UNCONFIRMED, **ids, action=action.value, why=why)

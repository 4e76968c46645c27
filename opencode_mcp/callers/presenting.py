"""Turn what the engine knows into results: fields for programs, `content` for people and models.

Claude Code shows a model only `structuredContent` on success and only the text block on errors;
Codex shows only `structuredContent` (FastMCP facts 10.3). So `content` is the text block, and each
of the two is complete by itself: id, status, answer, next call.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from opencode_mcp.callers.outcome_fields import add_outcome, called, is_partial
from opencode_mcp.callers.sizing import APPROVALS, ERROR_CHARS, clip, fit, short
from opencode_mcp.callers.structuring import add_structured
from opencode_mcp.callers.wording import answer_text, next_call
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode.models import PermissionRequest, QuestionRequest
from opencode_mcp.records import StopReason

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import Approval, EndingState, Retry, Status
    from opencode_mcp.engine.outcome import AskTimes, Verdict
    from opencode_mcp.engine.overview import View
    from opencode_mcp.opencode.models import RemoteStatus
    from opencode_mcp.records import Ending, Session, Turn


def iso(moment: datetime) -> str:
    """Return a moment as callers see it: ISO 8601, UTC, milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def present_view(view: View, *, max_chars: int, now: datetime) -> Result:
    """Return the result for one session as it stands."""
    session = view.session
    if session.phase is Phase.ENDING and session.ending is not None:
        return _present_ending(session, session.ending)
    if view.verdict is None or view.turn is None:
        return _present_unknown(view)
    result = present_turn(session, view.turn, view.verdict, max_chars=max_chars, now=now)
    if session.phase is Phase.QUARANTINED:
        result["status"], result["executionState"] = "quarantined", "unknown"
        result["resendSafety"] = "unknown"
        hint = next_call("quarantined")
        result["hint"] = hint
        result["content"] = f"{_head(session, 'quarantined')}\n{hint}"
        result.pop("error", None)
    return result


def present_turn(
    session: Session, turn: Turn, verdict: Verdict, *, max_chars: int, now: datetime
) -> Result:
    """Return the result for a turn: what it came to, or where it stands."""
    answer, cut = clip(verdict.answer, max_chars)
    status: Status = verdict.status.value
    ends = turn.stop_reason is StopReason.END
    action = next_call("ending" if ends else status, session.approval_policy)
    result: Result = {
        "kind": "turn",
        "status": status,
        "content": answer_text(session, turn, verdict, answer, action),
        "sessionId": session.id,
        "threadId": session.id,
        "turnId": turn.message_id,
        "turn": turn.number,
        "executionState": verdict.execution,
        "directory": short(session.directory),
        "output": {
            "state": _output_state(verdict),
            "answerChars": len(verdict.answer),
            "toolCallCount": len(verdict.tool_calls),
            "partial": is_partial(verdict),
        },
        "toolCallCount": len(verdict.tool_calls),
        "pendingApprovalCount": len(verdict.pending),
        "filesChangedCount": len(verdict.files_changed),
        "elapsedMs": _elapsed_ms(turn, verdict, now),
        "hint": action,
        "truncated": cut,
    }
    _add_details(result, session, turn, verdict, now)
    if cut:
        result["omittedFields"] = ["content"]
    add_structured(result, verdict.structured, turn)
    return fit(result)


def _add_details(
    result: Result, session: Session, turn: Turn, verdict: Verdict, now: datetime
) -> None:
    """Add the fields that are there only when there is something to say."""
    agent, model = verdict.agent or session.agent, verdict.model or session.model
    if agent:
        result["agent"] = short(agent)
    if model:
        result["model"] = short(model)
    if verdict.tool_calls:
        result["toolCalls"] = called(verdict)
    if verdict.pending:
        result["pendingApprovals"] = [
            _approval(ask, verdict.ask_times.get(ask.id)) for ask in verdict.pending[:APPROVALS]
        ]
    if verdict.warnings:
        result["warnings"] = [{"code": c, "message": short(m)} for c, m in verdict.warnings]
    if verdict.retry:
        result["upstreamRetry"] = _retry(verdict.retry, now)
    if verdict.is_over:
        add_outcome(result, turn, verdict)


def _output_state(verdict: Verdict) -> Literal["pending", "available", "unavailable"]:
    if not verdict.is_over:
        return "pending"
    return "available" if verdict.answer or verdict.tool_calls else "unavailable"


def _elapsed_ms(turn: Turn, verdict: Verdict, now: datetime) -> int:
    until = verdict.ended_at or turn.finished_at or now
    return max(0, round((until - turn.created_at).total_seconds() * 1000))


def _approval(ask: PermissionRequest | QuestionRequest, times: AskTimes | None) -> Approval:
    approval = _asked(ask)
    if times is not None:
        approval["askedAt"] = iso(times.asked_at)
        approval["deadlineAt"] = iso(times.deadline_at)
    return approval


def _asked(ask: PermissionRequest | QuestionRequest) -> Approval:
    if isinstance(ask, PermissionRequest):
        return {
            "id": ask.id,
            "kind": "permission",
            "sessionId": ask.session_id,
            "permission": short(ask.permission),
            "patterns": [short(pattern) for pattern in ask.patterns[:APPROVALS]],
        }
    return {
        "id": ask.id,
        "kind": "question",
        "sessionId": ask.session_id,
        "questions": [
            {
                "question": short(item.question),
                "header": short(item.header),
                "options": [
                    {"label": short(o.label), "description": short(o.description)}
                    for o in item.options[:APPROVALS]
                ],
                "multiple": item.multiple,
                "custom": item.custom,
            }
            for item in ask.questions[:APPROVALS]
        ],
    }


def _retry(status: RemoteStatus, now: datetime) -> Retry:
    retry: Retry = {"observedAt": iso(now)}
    if status.attempt is not None:
        retry["attempt"] = status.attempt
    if status.message:
        retry["message"] = short(status.message)
    if status.next:
        retry["nextAt"] = iso(status.next)
    return retry


def ending_state(ending: Ending) -> EndingState:
    """Return the `ending` field."""
    state: EndingState = {
        "action": ending.action.value,
        "since": iso(ending.since),
        "attempt": ending.attempt,
    }
    if ending.last_error:
        state["lastError"] = short(ending.last_error)
    if ending.next_at:
        state["nextTryAt"] = iso(ending.next_at)
    return state


def _head(session: Session, status: str) -> str:
    return f"session {session.id} · status: {status}"


def _present_ending(session: Session, ending: Ending) -> Result:
    action = next_call("ending")
    state = ending_state(ending)
    last = f" The last try failed: {state['lastError']}." if "lastError" in state else ""
    return {
        "kind": "turn",
        "status": "ending",
        "content": f"{_head(session, 'ending')} ({ending.action.value} accepted at"
        f" {state['since']}, tried {ending.attempt} times, not confirmed).{last}\n{action}",
        "sessionId": session.id,
        "threadId": session.id,
        "executionState": "unknown",
        "cleanup": "unconfirmed",
        "directory": session.directory,
        "accepted": True,
        "done": False,
        "ending": state,
        "hint": action,
    }


def _present_unknown(view: View) -> Result:
    """Return the result for a session without a turn, or whose OpenCode cannot be asked."""
    session = view.session
    status: Status = "unknown" if view.unknown_because else "idle"
    action = next_call(status)
    why = (
        f" OpenCode cannot be asked: {short(view.unknown_because, ERROR_CHARS)}"
        if (view.unknown_because)
        else ""
    )
    result: Result = {
        "kind": "turn",
        "status": status,
        "content": f"{_head(session, status)}.{why}\n{action}",
        "sessionId": session.id,
        "threadId": session.id,
        "executionState": "unknown" if view.unknown_because else "stopped",
        "directory": session.directory,
        "hint": action,
    }
    if view.turn:
        result["turnId"], result["turn"] = view.turn.message_id, view.turn.number
    return result

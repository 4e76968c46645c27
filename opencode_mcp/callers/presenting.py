"""Turn what the engine knows into results: fields for programs, `content` for people and models.

Claude Code shows a model only `structuredContent` on success and only the text block on errors;
Codex shows only `structuredContent` (FastMCP facts 10.3). So `content` is the text block, and each
of the two is complete by itself: id, status, answer, next call.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from opencode_mcp.callers.asks import pending_approvals
from opencode_mcp.callers.moments import iso
from opencode_mcp.callers.outcome_fields import add_calls, add_outcome, is_partial, warned
from opencode_mcp.callers.sizing import (
    ERROR_CHARS,
    FITTED_CHARS,
    NAME_CHARS,
    NOTES_CHARS,
    clip,
    drop_in_order,
    mark_omitted,
    serialized_size,
    short,
    text_size,
)
from opencode_mcp.callers.structuring import add_structured, left_out
from opencode_mcp.callers.wording import foot, next_call, notes, rest_of_answer
from opencode_mcp.lifecycle import Phase
from opencode_mcp.records import StopReason

if TYPE_CHECKING:
    from datetime import datetime

    from opencode_mcp.callers.shown import Shown
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import Degraded, EndingState, Retry, Status, Warned
    from opencode_mcp.engine.outcome import Verdict
    from opencode_mcp.engine.overview import View
    from opencode_mcp.opencode.models import RemoteStatus
    from opencode_mcp.records import Ending, Session, Turn


def present_view(view: View, shown: Shown, *, now: datetime) -> Result:
    """Return the result for one session as it stands."""
    session = view.session
    if session.phase is Phase.ENDING and session.ending is not None:
        return shown.without_details(_present_ending(session, session.ending))
    if view.verdict is None or view.turn is None:
        return shown.without_details(_present_unknown(view))
    if session.phase is not Phase.QUARANTINED:
        return present_turn(session, view.turn, view.verdict, shown, now=now)
    result = present_turn(session, view.turn, replace(view.verdict, answer=""), shown, now=now)
    result["status"], result["executionState"] = "quarantined", "unknown"
    result["resendSafety"] = "unknown"
    hint = next_call("quarantined")
    result["hint"] = hint
    result["content"] = f"{_head(session, 'quarantined')}\n{hint}"
    result.pop("error", None)
    return result


def present_turn(  # noqa: PLR0913 - a turn, what it came to, and how that is to be shown
    session: Session,
    turn: Turn,
    verdict: Verdict,
    shown: Shown,
    *,
    now: datetime,
    lead: str = "",
    upstream_read: Degraded | None = None,
) -> Result:
    """Return the result for a turn: what it came to, or where it stands.

    `lead`: what the text says first. `upstream_read`: why OpenCode cannot be asked about it now.
    """
    ends = turn.stop_reason is StopReason.END
    action = next_call("ending" if ends else verdict.status.value, session.approval_policy)
    result = _about(session, turn, verdict, now)
    result["hint"] = action
    if upstream_read is not None:
        result["executionState"], result["upstreamRead"] = "unknown", upstream_read
    if verdict.retry:
        result["upstreamRetry"] = _retry(verdict.retry, now, shown.error_chars)
    if verdict.tool_calls and shown.detail == "standard":
        add_calls(result, verdict)
    warnings = warned(verdict, shown.warnings_chars)
    _add_asks_and_warnings(result, verdict, warnings, shown)
    if verdict.is_over:
        add_outcome(result, turn, verdict, shown)
    said = [*notes(result, verdict, warnings), *add_structured(result, verdict.structured)]
    told = _Told(lead, said, foot(session, turn, verdict.status.value))
    return _with_text(shown.without_details(result), verdict.answer, told, shown)


def _about(session: Session, turn: Turn, verdict: Verdict, now: datetime) -> Result:
    """Return the fields that every turn has."""
    result: Result = {
        "kind": "turn",
        "status": verdict.status.value,
        "content": "",
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
        "truncated": False,
    }
    agent, model = verdict.agent or session.agent, verdict.model or session.model
    if agent:
        result["agent"] = short(agent)
    if model:
        result["model"] = short(model)
    return result


class _Told(NamedTuple):
    """What the text of a turn says before and behind its answer."""

    lead: str
    notes: list[str]
    foot: str

    def text(self, answer: str, hint: str) -> str:
        """Return the whole text; `hint` is the next call."""
        return "\n\n".join(
            part for part in (self.lead, answer, *self.notes, f"{self.foot} {hint}") if part
        )


def _with_text(result: Result, answer: str, told: _Told, shown: Shown) -> Result:
    """Add the text: the answer first, as much as there is room for, then what is said of it.

    Where there is less room than the answer may take, the lists go before it is cut further.
    """
    hint = result["hint"]
    is_blank = not answer.strip()
    result["content"] = told.text("", hint)
    need = 0 if is_blank else min(text_size(answer[: shown.max_chars]), shown.answer_chars)
    result = drop_in_order(result, FITTED_CHARS - need)
    told = told._replace(notes=[*told.notes, *left_out(result)])
    result["content"] = told.text("", hint)
    if is_blank:
        return result
    rest = f"{rest_of_answer(result['turn'])} {hint}"
    room = FITTED_CHARS - NOTES_CHARS - serialized_size(result)
    room -= 2 * (len(rest) - len(hint))  # in the text and beside it, should the answer be cut
    clipped, cut = clip(answer, shown.max_chars, min(shown.answer_chars, room))
    if cut:
        mark_omitted(result, "content")
        result["hint"] = hint = rest
    result["content"] = told.text(clipped, hint)
    return result


def _add_asks_and_warnings(
    result: Result, verdict: Verdict, warnings: list[Warned], shown: Shown
) -> None:
    if verdict.pending:
        result["pendingApprovals"], is_all = pending_approvals(verdict, shown.asks_chars)
        if not is_all:
            mark_omitted(result, "pendingApprovals")
    if warnings:
        result["warnings"] = warnings
    if len(warnings) < len(verdict.warnings):
        mark_omitted(result, "warnings")


def _output_state(verdict: Verdict) -> Literal["pending", "available", "unavailable"]:
    if not verdict.is_over:
        return "pending"
    return "available" if verdict.answer or verdict.tool_calls else "unavailable"


def _elapsed_ms(turn: Turn, verdict: Verdict, now: datetime) -> int:
    until = verdict.ended_at or turn.finished_at or now
    return max(0, round((until - turn.created_at).total_seconds() * 1000))


def _retry(status: RemoteStatus, now: datetime, limit: int) -> Retry:
    retry: Retry = {"observedAt": iso(now)}
    if status.attempt is not None:
        retry["attempt"] = status.attempt
    if status.message and limit:
        retry["message"] = short(status.message, min(NAME_CHARS, limit))
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
        "directory": short(session.directory),
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
    because = view.unknown_because
    why = f" OpenCode cannot be asked: {short(because, ERROR_CHARS)}" if because else ""
    result: Result = {
        "kind": "turn",
        "status": status,
        "content": f"{_head(session, status)}.{why}\n{action}",
        "sessionId": session.id,
        "threadId": session.id,
        "executionState": "unknown" if view.unknown_because else "stopped",
        "directory": short(session.directory),
        "hint": action,
    }
    if view.turn:
        result["turnId"], result["turn"] = view.turn.message_id, view.turn.number
    return result

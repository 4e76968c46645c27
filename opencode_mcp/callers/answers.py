"""Results that are not turns: an end, an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.callers.sizing import clip_message
from opencode_mcp.callers.wording import next_call
from opencode_mcp.counting import happened
from opencode_mcp.errors import CallerError, OpencodeMcpError
from opencode_mcp.opencode_errors import OpencodeError

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import Fault
    from opencode_mcp.engine.ends import Ended, Unconfirmed


def present_end(end: Ended, *, elapsed_ms: int) -> Result:
    """Return the result of a confirmed end."""
    if end.action.value == "archive" and not end.was_gone:
        hint = (
            "Archived and confirmed: OpenCode keeps the conversation under this id, hidden from its"
            " lists but readable; it has no way to un-archive. This server tracks it no more."
        )
    elif end.was_gone:
        hint = "It had been deleted in OpenCode already; this server tracks it no more."
    else:
        hint = "Deleted and confirmed: OpenCode does not know it any more."
    took = [
        "the running turn was stopped" if end.aborted_running_turn else "",
        happened(end.rejected_permissions, "permission", "rejected"),
        happened(end.rejected_questions, "question", "rejected"),
        happened(end.ended_subsessions, "sub-session", "ended"),
    ]
    facts = "; ".join(filter(None, took))
    text = f"session {end.session_id} · status: ended ({end.action.value})."
    return {
        "kind": "end",
        "status": "ended",
        "content": f"{text} {facts[:1].upper()}{facts[1:]}{'. ' if facts else ''}{hint}",
        "sessionId": end.session_id,
        "threadId": end.session_id,
        "action": end.action.value,
        "abortedRunningTurn": end.aborted_running_turn,
        "rejectedPermissions": end.rejected_permissions,
        "rejectedQuestions": end.rejected_questions,
        "endedSubsessions": end.ended_subsessions,
        "cleanup": "complete",
        "accepted": True,
        "done": True,
        "elapsedMs": elapsed_ms,
        "hint": hint,
    }


def present_not_found(reference: str, why: str, *, elapsed_ms: int) -> Result:
    """Return the result of an end of something that is not tracked; OpenCode was not asked."""
    return {
        "kind": "end",
        "status": "not_found",
        "content": f"session {reference[:100]} · status: not_found. {why}. Nothing was done.",
        "sessionId": reference,
        "threadId": reference,
        "action": "none",
        "abortedRunningTurn": False,
        "rejectedPermissions": 0,
        "rejectedQuestions": 0,
        "endedSubsessions": 0,
        "cleanup": "complete",
        "accepted": False,
        "done": True,
        "elapsedMs": elapsed_ms,
        "hint": why,
    }


def present_unconfirmed(end: Unconfirmed, *, elapsed_ms: int, advice: str) -> Result:
    """Return the result of an end that was accepted and is not confirmed."""
    reason = clip_message(f"{end.reason}. {advice}" if advice else end.reason)[0]
    action = next_call("ending")
    name = "CLEANUP_UNCONFIRMED"
    if end.cause is not None and not end.cause.retryable and isinstance(end.cause, OpencodeError):
        name = end.cause.name
    return {
        "kind": "end",
        "status": "ending",
        "content": f"session {end.session_id} · status: ending ({end.action.value}). {name}: the"
        f" end was accepted and is not confirmed: {reason}\n{action}",
        "sessionId": end.session_id,
        "threadId": end.session_id,
        "action": end.action.value,
        "cleanup": "unconfirmed",
        "accepted": True,
        "done": False,
        "elapsedMs": elapsed_ms,
        "error": {"name": name, "message": reason, "retryable": True},
        "hint": action,
    }


def present_error(error: Exception, advice: str = "") -> Result:
    """Return the result for a fault. What is not of our tree says nothing of its inside.

    `advice` is what to do about it, where the error itself cannot know.
    """
    if not isinstance(error, OpencodeMcpError):
        return error_result("INTERNAL", "Something in this server went wrong; its log says what.")
    session_id = error.session_id if isinstance(error, CallerError) else None
    return _error(fault_of(error, advice), session_id)


def fault_of(error: OpencodeMcpError, advice: str = "") -> Fault:
    """Return the `error` field for a fault of ours."""
    fault: Fault = {
        "name": error.name,
        "message": clip_message(f"{error}. {advice}" if advice else str(error))[0],
        "retryable": error.retryable,
    }
    if isinstance(error, OpencodeError):
        if error.status is not None:
            fault["statusCode"] = error.status
        if error.retry_after_s is not None:
            fault["retryAfterSeconds"] = error.retry_after_s
    return fault


def error_result(name: str, message: str) -> Result:
    """Return the result for a fault with this name and text."""
    return _error({"name": name, "message": clip_message(message)[0], "retryable": False})


def _error(fault: Fault, session_id: str | None = None) -> Result:
    about = f"session {session_id} · " if session_id else ""
    result: Result = {
        "kind": "error",
        "status": "error",
        "content": f"{about}{fault['name']}: {fault['message']}",
        "error": fault,
    }
    if session_id:
        result["sessionId"] = result["threadId"] = session_id
    return result

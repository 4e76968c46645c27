"""What `opencode-cancel` answers: what is known, never what is hoped (contract §2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.callers.answers import fault_of
from opencode_mcp.callers.presenting import ending_state, present_turn, present_view
from opencode_mcp.callers.shown import Shown
from opencode_mcp.callers.sizing import clip_message, short
from opencode_mcp.callers.wording import foot, next_call
from opencode_mcp.engine.outcome import TurnStatus
from opencode_mcp.engine.overview import View

if TYPE_CHECKING:
    from datetime import datetime

    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.cancelling import Cancelled
    from opencode_mcp.engine.outcome import Verdict
    from opencode_mcp.records import Session

_TRIED_AGAIN = (
    "The wish to stop is recorded and is tried again until OpenCode confirms it: look with"
    " opencode-status, or call opencode-cancel again; repeating is safe."
)


def present_cancel(cancelled: Cancelled, shown: Shown, *, now: datetime) -> Result:
    """Return the result of a cancel."""
    verdict = cancelled.verdict
    over = verdict if verdict is not None and verdict.is_over else None
    lead = _what_was_done(cancelled, over)
    if over is not None:
        session, turn = cancelled.session, cancelled.turn
        result = present_turn(session, turn, over, shown, now=now, lead=lead)
    else:
        result = _stopping(cancelled, lead)
    result["accepted"] = cancelled.accepted
    result["done"] = cancelled.done
    result["alreadyDone"] = cancelled.already_done
    result["cancelled"] = over.status is TurnStatus.CANCELLED if over else None
    result["timedOut"] = over is not None and over.status is TurnStatus.TIMEOUT
    result["nextAction"] = result["hint"]
    return result


def present_no_turn(session: Session) -> Result:
    """Return the result of a cancel in a session that has no turn."""
    result = present_view(View(session, None, None), Shown(0), now=session.updated_at)
    result["content"] = f"It has no turn: nothing was sent.\n\n{result['content']}"
    result["accepted"], result["done"], result["alreadyDone"] = False, True, True
    result["cancelled"], result["timedOut"] = False, False
    result["nextAction"] = result["hint"]
    return result


def _stopping(cancelled: Cancelled, lead: str) -> Result:
    session, turn = cancelled.session, cancelled.turn
    action = next_call("ending" if session.ending else "stopping")
    if cancelled.fault:
        action = _TRIED_AGAIN
    result: Result = {
        "kind": "turn",
        "status": "stopping",
        "content": f"{lead}\n\n{foot(session, turn, 'stopping')} {action}",
        "sessionId": session.id,
        "threadId": session.id,
        "turnId": turn.message_id,
        "turn": turn.number,
        "executionState": "unknown" if cancelled.fault else "active",
        "directory": short(session.directory),
        "hint": action,
    }
    if session.ending:
        result["ending"] = ending_state(session.ending)
    if cancelled.fault:
        result["error"] = fault_of(cancelled.fault)
    return result


def _what_was_done(cancelled: Cancelled, over: Verdict | None) -> str:
    """Return what the text says first: what this call did."""
    if cancelled.already_done:
        said = "The turn was over before this call; nothing was sent."
    elif cancelled.fault:
        why = clip_message(str(cancelled.fault))[0]
        said = f"{cancelled.fault.name}: the abort could not be sent: {why}"
    elif over is None and cancelled.session.ending:
        said = "The session is being ended, which stops the turn."
    elif over is None:
        said = "The stop was sent. That the turn is over is not confirmed yet."
    elif over.status is TurnStatus.CANCELLED:
        said = "The turn was cut short; that is confirmed."
    else:
        said = f"The turn came to its own end first: {over.status.value}."
    return said

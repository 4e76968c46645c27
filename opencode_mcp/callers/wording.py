"""The sentences that a model reads: how a turn stands, and which call comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.callers.asks import told_in_text
from opencode_mcp.counting import counted
from opencode_mcp.engine.outcome import TurnStatus
from opencode_mcp.errors import InstanceUnreachableError
from opencode_mcp.opencode_errors import (
    OpencodeStartError,
    OpencodeUnauthorizedError,
    OpencodeUnavailableError,
)
from opencode_mcp.records import ApprovalPolicy, InstanceKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import Fault, Warned
    from opencode_mcp.engine.outcome import Verdict
    from opencode_mcp.records import Session, Turn
    from opencode_mcp.settings import Settings

_NEXT = {
    "running": "The turn goes on. Call opencode-status with this id to look again; do not send the"
    " prompt again. opencode-cancel stops it; opencode-end stops it and ends the session.",
    "stopping": "The turn was asked to stop and has not been seen to stop yet; it is tried until it"
    " is. Call opencode-status with this id and wait-seconds, or opencode-cancel again.",
    "completed": "Continue with opencode-reply and this id; when you are done, end the session"
    " with opencode-end.",
    "failed": "Look at the error, then continue with opencode-reply and this id, or end the"
    " session with opencode-end.",
    "cancelled": "The turn was cut short; its effects so far stay. Continue with opencode-reply"
    " and this id, or end the session with opencode-end.",
    "timeout": "The turn was stopped at its time limit; its effects so far stay. Continue with"
    " opencode-reply and a higher timeout-seconds, or end the session with opencode-end.",
    "idle": "No turn runs. Continue with opencode-reply and this id, or end the session with"
    " opencode-end.",
    "quarantined": "A prompt was sent and its answer lost, so it may or may not run. Do not send"
    " it again: call opencode-status to look again, or opencode-end to end the session.",
    "unknown": "Nothing is known until OpenCode can be asked again: call opencode-status later."
    " opencode-end is accepted at any time.",
    "ending": "Call opencode-end with this id to try again; it is safe to repeat. The session"
    " takes no new prompt.",
}


_INSPECT = (
    "Tools of this turn may have changed something: look at that before you send the prompt again."
)


_ASKING = {
    ApprovalPolicy.NEVER: "The turn waits for leave, which this session's policy rejects at once:"
    " call opencode-status to look again.",
    ApprovalPolicy.ON_REQUEST: "The turn waits for a person. Call opencode-status with this id and"
    " wait-seconds: they are asked while a call watches. At its deadline it is rejected.",
    ApprovalPolicy.CALLER: "The turn waits for you: call opencode-approve with this id, the"
    " approvalId and your decision. At its deadline it is rejected.",
}


def next_call(status: str, policy: ApprovalPolicy = ApprovalPolicy.NEVER) -> str:
    """Return what to call next, for a session of this policy in this status."""
    return _ASKING[policy] if status == "waiting_for_approval" else _NEXT[status]


def rest_of_answer(turn: int) -> str:
    """Return where the whole of an answer is that was cut to size."""
    return f"The answer is cut: opencode-output with this id and turn {turn} has all of it."


def advise(error: Exception | None, settings: Settings) -> str:
    """Return what to do about a fault of the other side, or "" if its own text says it."""
    attached = settings.server_url is not None and settings.mode is InstanceKind.ATTACH
    match error:
        case OpencodeUnauthorizedError():
            return (
                "OpenCode refuses this server: set OPENCODE_MCP_SERVER_PASSWORD (or _FILE) and"
                " OPENCODE_MCP_SERVER_USERNAME as OpenCode has them."
            )
        case OpencodeStartError() | InstanceUnreachableError():
            return ""
        case OpencodeUnavailableError() if attached:
            return (
                f"Make sure that OpenCode runs at {settings.server_url}"
                " (OPENCODE_MCP_SERVER_URL), then call again."
            )
        case OpencodeUnavailableError():
            return "The managed OpenCode does not answer now: call again in a moment."
        case _:
            return ""


def notes(result: Result, verdict: Verdict, warnings: Sequence[Warned]) -> list[str]:
    """Return what the text says besides the answer, from what the fields of the result say."""
    lines = []
    if "error" in result:
        lines.append(_fault_text(result["error"]))
        if verdict.resend_safety == "inspect_effects":
            lines.append(_INSPECT)
    elif verdict.status is TurnStatus.COMPLETED and not verdict.answer.strip():
        lines.append(f"(no text; {counted(len(verdict.tool_calls), 'tool call')})")
    lines.extend(f"Warning {warning['code']}: {warning['message']}" for warning in warnings)
    lines.extend(told_in_text(ask) for ask in result.get("pendingApprovals", []))
    if "message" in result.get("upstreamRetry", {}):
        lines.append(f"OpenCode retries the provider: {result['upstreamRetry']['message']}")
    return lines


def foot(session: Session, turn: Turn, status: str) -> str:
    """Return what the end of a turn's text says it is about; the next call follows."""
    return f"[session {session.id} · turn {turn.number} · {status}]"


def _fault_text(fault: Fault) -> str:
    code = f" (HTTP {fault['statusCode']})" if fault.get("statusCode") else ""
    wait = fault.get("retryAfterSeconds")
    later = "" if wait is None else f" The provider asks to wait {wait:g} s."
    return f"{fault['name']}{code}: {fault['message']}{later}"

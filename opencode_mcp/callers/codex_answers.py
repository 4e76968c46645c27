"""What `codex` and `codex-reply` answer: `threadId` and `content`, and nothing else.

`content` is the agent's answer as it is, for a program that reads it; what the caller must know
besides (a fault, a warning) follows in paragraphs of its own. The text block is the same, with the
thread's id. There is no status to read, so whatever is not a completed turn is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastmcp.tools.base import ToolResult
from mcp_types import TextContent

from opencode_mcp.callers.argument_kinds import MAX_NAME_CHARS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.outcome import Verdict

#: leaves room for the id, so that either half stays under 45,000 (contract §3)
_MAX_CONTENT_CHARS = 43_500
#: of the answer in its longest spelling: leaves room for what must be said besides
_MAX_ANSWER_CHARS = 36_000
_MAX_SHOWN_ID_CHARS = 100
_GO_ON = "continue with codex-reply and this threadId, or end the thread with opencode-end."
_NEXT = {
    "failed": f"Look at the error, then {_GO_ON}",
    "cancelled": f"The turn was cut short; its effects so far stay: {_GO_ON}",
    "timeout": f"The turn was stopped at its time limit; its effects so far stay: {_GO_ON}",
    "running": "The turn is not over: opencode-status with this threadId tells what comes of it. Do"
    " not send the prompt again.",
    "stopping": "The turn was asked to stop and has not been seen to stop yet: opencode-status with"
    " this threadId looks again.",
    "waiting_for_approval": "The turn waits for an answer: opencode-approve with this threadId"
    " gives one, opencode-status looks again. At its deadline it is rejected.",
}
_RESEND = {
    "not_submitted": "Nothing was sent.",
    "unknown": "Whether the prompt was sent is not known: do not send it again before you have"
    " looked with opencode-status.",
}


def output_schema() -> dict[str, Any]:
    """Return the output schema as the Codex MCP server listed it."""
    text = {"type": "string"}
    return {
        "type": "object",
        "properties": {"threadId": text, "content": text},
        "required": ["threadId", "content"],
    }


def say_what_came(result: Result, verdict: Verdict | None, max_chars: int) -> Result:
    """Give a turn's result the content that callers of Codex expect."""
    from opencode_mcp.callers.sizing import clip  # noqa: PLC0415 - late, as all that presents
    from opencode_mcp.callers.wording import notes, rest_of_answer  # noqa: PLC0415

    if verdict is None or result["status"] != verdict.status.value:
        return result  # it tells of the session, not of its turn
    answer, cut = clip(verdict.answer, max_chars, _MAX_ANSWER_CHARS)
    paragraphs = [answer] if answer.strip() else []
    if cut:
        paragraphs.append(rest_of_answer(result["turn"]))
    paragraphs += notes(result, verdict, result.get("warnings", []))
    if result["status"] in _NEXT:
        paragraphs.append(_NEXT[result["status"]])
    result["content"] = "\n\n".join(paragraphs)
    return result


def to_codex_result(result: Result, arguments: Mapping[str, Any]) -> ToolResult:
    """Return a result as Codex had it. `arguments`: as they came, also if they were refused.

    On an error without a session the id is the one that the caller sent, as with Codex; where
    there is none, an empty text: the schema wants one.
    """
    from opencode_mcp.callers.sizing import clip, short  # noqa: PLC0415

    thread_id = result.get("threadId") or _given(arguments)
    content = result["content"]
    resend = _RESEND.get(result.get("resendSafety", "")) if result["kind"] == "error" else None
    if resend and resend.rstrip(".").lower() not in content.lower():
        content = f"{content}\n\n{resend}"
    content = clip(content, _MAX_CONTENT_CHARS, _MAX_CONTENT_CHARS)[0]
    foot = f"\n\n[threadId {short(thread_id, _MAX_SHOWN_ID_CHARS)}]" if thread_id else ""
    return ToolResult(
        content=[TextContent(type="text", text=content + foot)],
        structured_content={"threadId": thread_id, "content": content},
        is_error=result["status"] != "completed",
    )


def _given(arguments: Mapping[str, Any]) -> str:
    """Return the one thread id that a caller sent, or an empty text."""
    sent = [arguments.get(name) for name in ("threadId", "conversationId")]
    ids = [one for one in sent if isinstance(one, str) and len(one) <= MAX_NAME_CHARS]
    if len(ids) != 1:
        return ""
    return ids[0].encode(errors="replace").decode()  # half of a surrogate pair cannot be sent

"""The fields of a turn that tell what it came to and what it left (contract §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from opencode_mcp.callers.sizing import (
    FILES,
    NAME_CHARS,
    TOOL_CALLS,
    clip_message,
    fitting,
    mark_omitted,
    short,
)
from opencode_mcp.records import Submission

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opencode_mcp.callers.shown import Shown
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import Called, Fault, TokenCount, Warned
    from opencode_mcp.engine.effects import ToolCall, Usage
    from opencode_mcp.engine.failures import Failure
    from opencode_mcp.engine.outcome import Verdict
    from opencode_mcp.records import Turn


def add_outcome(result: Result, turn: Turn, verdict: Verdict, shown: Shown) -> None:
    """Add what only a turn that is over has."""
    result["resendSafety"] = _resend_safety(turn, verdict)
    result["cleanup"] = "complete" if verdict.execution == "stopped" else "unconfirmed"
    result["cost"] = verdict.usage.cost
    result["tokens"] = _tokens(verdict.usage)
    if verdict.finish:
        result["finish"] = short(verdict.finish)
    if verdict.files_changed and shown.detail == "standard":
        result["filesChanged"] = [short(f) for f in verdict.files_changed[:FILES]]
        if len(verdict.files_changed) > FILES:
            mark_omitted(result, "filesChanged")
    if verdict.failure:
        _add_fault(result, verdict.failure, shown.error_chars)
    if verdict.response_loop:
        loop = verdict.response_loop
        result["responseLoop"] = {
            "count": loop.count,
            "windowMs": loop.window_ms,
            "pattern": loop.pattern,
        }


def is_partial(verdict: Verdict) -> bool:
    """Whether there is an answer that is not all there would have been."""
    return bool(verdict.answer) and not verdict.has_whole_answer


def _resend_safety(
    turn: Turn, verdict: Verdict
) -> Literal["not_submitted", "no_observed_effects", "inspect_effects", "unknown"]:
    """Say whether the prompt may be sent again; what OpenCode never took has no effects."""
    if turn.submission is Submission.REFUSED:
        return "not_submitted"
    return verdict.resend_safety or "unknown"


def _tokens(usage: Usage) -> TokenCount:
    return {
        "input": usage.input,
        "output": usage.output,
        "reasoning": usage.reasoning,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
    }


def _add_fault(result: Result, failure: Failure, error_chars: int) -> None:
    message, is_cut = clip_message(failure.message, error_chars)
    fault: Fault = {
        "name": failure.name,
        "message": message,
        "retryable": failure.retryable,
    }
    if failure.status_code is not None:
        fault["statusCode"] = failure.status_code
    if failure.retry_after_s is not None:
        fault["retryAfterSeconds"] = failure.retry_after_s
    lost = ["error.message"] if is_cut else []
    if failure.condition and error_chars:
        fault["condition"] = short(failure.condition, min(NAME_CHARS, error_chars))
    elif failure.condition:
        lost.append("error.condition")
    result["error"] = fault
    mark_omitted(result, *lost)


def add_calls(result: Result, verdict: Verdict) -> None:
    """Add the `toolCalls` field: the newest calls, in their order."""
    listed = [call_entry(call) for call in verdict.tool_calls[-TOOL_CALLS:]]
    result["toolCalls"] = listed
    if len(listed) < len(verdict.tool_calls):
        mark_omitted(result, "toolCalls")


def warned(verdict: Verdict, limit: int) -> list[Warned]:
    """Return the `warnings` field: as many as there is room for in `limit` characters."""
    every: Iterator[Warned] = (
        {"code": short(code), "message": short(message)} for code, message in verdict.warnings
    )
    return fitting(every, limit)


def call_entry(call: ToolCall) -> Called:
    """Return one entry of a `toolCalls` field."""
    item: Called = {"tool": short(call.tool), "status": short(call.status)}
    if call.title:
        item["title"] = short(call.title)
    if call.reason:
        item["reason"] = short(call.reason)
    return item

"""The shapes that leave: contract §3, field for field, as far as the features are built.

One output schema serves every tool: `kind` says which fields to expect. It carries no titles and
descriptions, because it is sent with every tool.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Literal, Required

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from opencode_mcp.callers.wire_parts import (
    Approval,
    Called,
    Degraded,
    EndingState,
    Entry,
    Fault,
    Listed,
    Loop,
    Output,
    Repeated,
    Retry,
    Status,
    TokenCount,
    Warned,
)


class Result(TypedDict, total=False):
    """What every tool answers."""

    kind: Required[Literal["turn", "sessions", "batch", "end", "error"]]
    status: Required[Status]
    content: Required[str]
    sessionId: str
    threadId: str
    turnId: str
    turn: int
    executionState: Literal["active", "stopped", "unknown"]
    cleanup: Literal["complete", "unconfirmed"]
    directory: str
    agent: str
    model: str
    output: Output
    finish: str
    warnings: list[Warned]
    error: Fault
    filesChanged: list[str]
    filesChangedCount: int
    toolCalls: list[Called]
    toolCallCount: int
    pendingApprovals: list[Approval]
    pendingApprovalCount: int
    tokens: TokenCount
    cost: float
    elapsedMs: int
    truncated: bool
    omittedFields: list[str]
    hint: str
    resendSafety: Literal["not_submitted", "no_observed_effects", "inspect_effects", "unknown"]
    upstreamRetry: Retry
    upstreamRead: Degraded
    responseLoop: Loop
    request: Repeated
    accepted: bool
    done: bool
    alreadyDone: bool
    cancelled: bool | None
    timedOut: bool
    nextAction: str
    ending: EndingState
    sessions: list[Listed]
    total: int
    offset: int
    nextOffset: int
    hasMore: bool
    waitFor: Literal["any", "all"]
    reason: Literal["condition", "deadline"]
    results: list[Entry]
    readyIds: list[str]
    pendingIds: list[str]
    action: Literal["delete", "archive", "none"]
    abortedRunningTurn: bool
    rejectedPermissions: int
    rejectedQuestions: int
    endedSubsessions: int


@cache
def output_schema() -> dict[str, Any]:
    """Return the JSON Schema of `Result`, without titles and descriptions."""
    schema = TypeAdapter(Result).json_schema()
    bare = _with_single_uses_in_place(_without_notes(schema))
    bare["type"] = "object"
    return bare


def _with_single_uses_in_place(schema: dict[str, Any]) -> dict[str, Any]:
    """Put each shape that is used once where it is used: a name of its own costs bytes."""
    shapes = schema.pop("$defs")
    text = json.dumps([schema, shapes])
    single = {name for name in shapes if text.count(f'"#/$defs/{name}"') == 1}

    def placed(node: Any) -> Any:  # noqa: ANN401 - any part of a JSON Schema
        if isinstance(node, list):
            return [placed(part) for part in node]
        if not isinstance(node, dict):
            return node
        name = str(node.get("$ref")).removeprefix("#/$defs/")
        return placed(shapes[name]) if name in single else {k: placed(v) for k, v in node.items()}

    rest = {name: placed(shape) for name, shape in shapes.items() if name not in single}
    return {"$defs": rest, **placed(schema)}


def _without_notes(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop `title` and `description` keywords, but not properties of those names."""
    bare: dict[str, Any] = {}
    for key, value in schema.items():
        if key in {"title", "description"} and isinstance(value, str):
            continue
        if key in {"properties", "$defs"}:
            bare[key] = {name: _without_notes(sub) for name, sub in value.items()}
        elif isinstance(value, dict):
            bare[key] = _without_notes(value)
        elif isinstance(value, list):
            bare[key] = [_without_notes(v) if isinstance(v, dict) else v for v in value]
        else:
            bare[key] = value
    return bare

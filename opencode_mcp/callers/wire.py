"""The shapes that leave: contract §3, field for field, as far as the features are built.

One output schema serves every tool: `kind` says which fields to expect. It carries no titles and
descriptions, and short names (`compacting.py`), because it is sent with every tool.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, Required

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from opencode_mcp.callers.compacting import compact
from opencode_mcp.callers.wire_parts import (
    Approvals,
    Called,
    Changed,
    Degraded,
    EndingState,
    Entry,
    Fault,
    Listed,
    Loop,
    OfferedAgent,
    OfferedModel,
    Output,
    Repeated,
    Retry,
    Status,
    StructuredStatus,
    TokenCount,
    Warned,
)


class Result(TypedDict, total=False):
    """What every tool answers."""

    kind: Required[Literal["turn", "sessions", "batch", "output", "end", "info", "error"]]
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
    pendingApprovals: Approvals
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
    structuredOutput: Any
    structuredOutputStatus: StructuredStatus
    structuredOutputError: Warned
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
    opencodeVersion: str
    section: str
    partial: bool
    diff: list[Changed]
    observedAt: str
    waitFor: Literal["any", "all"]
    reason: Literal["condition", "deadline"]
    results: list[Entry]
    readyIds: list[str]
    pendingIds: list[str]
    snapshotId: str
    #: settings and versions, by their names in camelCase
    server: dict[str, str | int]
    models: list[OfferedModel]
    agents: list[OfferedAgent]
    roots: list[str]
    #: ok, or opencode_unreachable
    availability: str
    action: Literal["delete", "archive", "none"]
    abortedRunningTurn: bool
    rejectedPermissions: int
    rejectedQuestions: int
    endedSubsessions: int


@cache
def output_schema() -> dict[str, Any]:
    """Return the JSON Schema of `Result`, in few bytes: without titles and descriptions."""
    return compact(TypeAdapter(Result).json_schema())

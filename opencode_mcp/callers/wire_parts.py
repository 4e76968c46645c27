"""The parts of a result (contract §3): what stands under its fields and in its lists."""

from __future__ import annotations

from typing import Literal, Required, TypeAlias

from typing_extensions import TypeAliasType, TypedDict

#: named, so that the schema says it once
Status = TypeAliasType(
    "Status",
    Literal[
        "running",
        "waiting_for_approval",
        "stopping",
        "completed",
        "failed",
        "cancelled",
        "timeout",
        "idle",
        "ending",
        "quarantined",
        "unknown",
        "ok",
        "ready",
        "waiting",
        "ended",
        "not_found",
        "error",
    ],
)

StructuredStatus: TypeAlias = Literal["valid", "missing", "invalid"]


class Fault(TypedDict, total=False):
    """`error`: what went wrong, and whether the fault may pass."""

    name: Required[str]
    message: Required[str]
    statusCode: int
    retryable: bool
    retryAfterSeconds: float
    condition: str


class Repeated(TypedDict, total=False):
    """`request`: the call's request-id. Without `expiresAt` it is not remembered."""

    id: Required[str]
    replayed: Required[bool]
    expiresAt: str


class Output(TypedDict, total=False):
    """`output`: what there is to read of a turn."""

    state: Literal["pending", "available", "unavailable"]
    answerChars: int
    toolCallCount: int
    structuredChars: int
    partial: bool


class Warned(TypedDict):
    """One of `warnings`; and `structuredOutputError`, why there is no `structuredOutput`."""

    code: str
    message: str


class Called(TypedDict, total=False):
    """One of `toolCalls`."""

    tool: Required[str]
    status: Required[str]
    title: str
    reason: str


class Changed(TypedDict, total=False):
    """One of `diff`: a file that a turn changed; `index` names it to `file-index`."""

    index: Required[int]
    file: Required[str]
    status: str
    additions: int
    deletions: int


class Option(TypedDict, total=False):
    """One answer that a question offers."""

    label: Required[str]
    description: str


class Question(TypedDict, total=False):
    """One question of a pending request."""

    question: Required[str]
    header: str
    options: list[Option]
    multiple: bool
    custom: bool


class Approval(TypedDict, total=False):
    """One of `pendingApprovals`. `sessionId`: the session that asks, maybe a sub-session."""

    id: Required[str]
    kind: Required[Literal["permission", "question"]]
    sessionId: Required[str]
    permission: str
    patterns: list[str]
    questions: list[Question]
    askedAt: str
    deadlineAt: str


Approvals = TypeAliasType("Approvals", list[Approval])


class TokenCount(TypedDict):
    """`tokens` of all steps of a turn."""

    input: int
    output: int
    reasoning: int
    cacheRead: int
    cacheWrite: int


class Retry(TypedDict, total=False):
    """`upstreamRetry`: OpenCode waits before it asks the provider again."""

    attempt: int
    message: str
    nextAt: str
    observedAt: str


class Loop(TypedDict):
    """`responseLoop`: so many answers in a row without progress, and in which time."""

    count: int
    windowMs: int
    pattern: str


class EndingState(TypedDict, total=False):
    """`ending`: an end that was accepted and is not confirmed."""

    action: Required[Literal["delete", "archive"]]
    since: Required[str]
    attempt: int
    lastError: str
    nextTryAt: str


class Degraded(TypedDict, total=False):
    """`upstreamRead`: OpenCode cannot be asked about the turn now; it is tried again."""

    state: Required[Literal["degraded"]]
    reason: str
    since: str
    nextAt: str


class Entry(TypedDict, total=False):
    """One of `results`: a turn of a batch, at a glance."""

    kind: Required[Literal["turn", "error"]]
    status: Required[Status]
    content: Required[str]
    sessionId: str
    threadId: str
    turnId: str
    turn: int
    pendingApprovals: Approvals
    pendingApprovalCount: int
    structuredOutputStatus: StructuredStatus
    error: Fault
    elapsedMs: int
    truncated: bool
    omittedFields: list[str]


class Listed(TypedDict, total=False):
    """One of `sessions`."""

    sessionId: Required[str]
    threadId: Required[str]
    title: str
    directory: Required[str]
    status: Required[Status]
    turns: int
    createdAt: str
    updatedAt: str
    pendingApprovalCount: int
    #: only for who sees the sessions of all
    owner: str
    ending: EndingState


class OfferedModel(TypedDict, total=False):
    """One of `models`; its name is in the text."""

    id: str
    contextTokens: int
    outputTokens: int
    variants: list[str]
    toolCalls: bool


class OfferedAgent(TypedDict, total=False):
    """One of `agents`."""

    name: str
    description: str
    model: str

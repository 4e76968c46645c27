"""What callers send to the tools that act: one strict model a tool (contract §2)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from opencode_mcp.callers.argument_kinds import (
    AGENT_TEXT,
    DETAIL_TEXT,
    DEVELOPER_TEXT,
    MAX_CANCEL_WAIT_MS,
    MAX_WAIT_S,
    MODEL_TEXT,
    OUTPUT_TEXT,
    REQUEST_TEXT,
    SCHEMA_TEXT,
    TIMEOUT_TEXT,
    VARIANT_TEXT,
    WAIT_TEXT,
    Arguments,
    Instructions,
    Model,
    Name,
    NotBlank,
    NotBool,
    NotHuge,
    OutputChars,
    OutputSchema,
    Prompt,
    RequestId,
    SessionReference,
)


class StartArguments(Arguments):
    """`opencode`."""

    prompt: Prompt
    cwd: str | None = Field(
        None,
        max_length=4096,
        description="The folder the agent works in, for the whole session: absolute, inside the"
        " allowed roots (opencode-info). Omitted: the default folder.",
    )
    model: Model | None = Field(None, description=MODEL_TEXT + ".")
    agent: Name | None = Field(None, description=AGENT_TEXT + ".")
    variant: Name | None = Field(None, description=VARIANT_TEXT + ".")
    base_instructions: Instructions | None = Field(
        None,
        alias="base-instructions",
        description="Instructions for the whole session, appended to the agent's system prompt.",
    )
    developer_instructions: Instructions | None = Field(
        None,
        alias="developer-instructions",
        description=DEVELOPER_TEXT + "; kept for later turns until a reply replaces them.",
    )
    sandbox: Literal["read-only", "workspace-write", "danger-full-access"] | None = Field(
        None,
        description="What the agent is denied, for the whole session. read-only: edits, shell, and"
        " paths outside cwd; workspace-write: paths outside cwd; danger-full-access: nothing.",
    )
    approval_policy: Literal["never", "on-request", "caller"] | None = Field(
        None,
        alias="approval-policy",
        description="Who answers when the agent asks for leave, for the whole session. never:"
        " rejected at once; on-request: the person at your client, if it can ask one; caller: you,"
        " with opencode-approve.",
    )
    title: Annotated[str, Field(min_length=1, max_length=300)] | None = Field(
        None, description="A name for the session in lists. Omitted: OpenCode makes one."
    )
    timeout_seconds: Annotated[int, Field(ge=1), NotBool, NotHuge] | None = Field(
        None, alias="timeout-seconds", description=TIMEOUT_TEXT + "."
    )
    wait_seconds: Annotated[int, Field(ge=0, le=MAX_WAIT_S), NotBool] | None = Field(
        None, alias="wait-seconds", description=WAIT_TEXT + "."
    )
    detail: Literal["standard", "compact"] | None = Field(None, description=DETAIL_TEXT + ".")
    max_output_chars: OutputChars | None = Field(
        None, alias="max-output-chars", description=OUTPUT_TEXT + "."
    )
    output_schema: OutputSchema | None = Field(
        None, alias="output-schema", description=SCHEMA_TEXT + "."
    )
    request_id: RequestId | None = Field(None, alias="request-id", description=REQUEST_TEXT + ".")


class ReplyArguments(SessionReference):
    """`opencode-reply`."""

    prompt: Annotated[
        Prompt,
        Field(description="The next prompt; the agent remembers the session's earlier turns."),
    ]
    model: Model | None = Field(None, description="As in opencode; replaces the stored one.")
    agent: Name | None = Field(None, description="As in opencode; replaces the stored one.")
    variant: Name | None = Field(None, description="As in opencode; replaces the stored one.")
    developer_instructions: Instructions | None = Field(
        None,
        alias="developer-instructions",
        description="As in opencode; replace the stored ones.",
    )
    timeout_seconds: Annotated[int, Field(ge=1), NotBool, NotHuge] | None = Field(
        None, alias="timeout-seconds", description="The turn's time limit, as in opencode."
    )
    wait_seconds: Annotated[int, Field(ge=0, le=MAX_WAIT_S), NotBool] | None = Field(
        None, alias="wait-seconds", description="How long this call watches, as in opencode."
    )
    detail: Literal["standard", "compact"] | None = Field(
        None, description="How full the result is, as in opencode."
    )
    max_output_chars: OutputChars | None = Field(
        None, alias="max-output-chars", description="How long the answer may be, as in opencode."
    )
    output_schema: OutputSchema | None = Field(
        None, alias="output-schema", description="As in opencode, for this turn alone."
    )
    request_id: RequestId | None = Field(
        None, alias="request-id", description="Your name for this call, as in opencode."
    )


class CancelArguments(SessionReference):
    """`opencode-cancel`."""

    turn_id: Name | None = Field(
        None,
        alias="turnId",
        description="Stop this turn only, the `turnId` of a result; a later one is left alone."
        " Omitted: the newest turn.",
    )
    wait_ms: Annotated[int, Field(ge=0, le=MAX_CANCEL_WAIT_MS), NotBool] | None = Field(
        None,
        alias="wait-ms",
        description="How long to wait for proof that the turn is over, in milliseconds; 0 returns"
        " once the stop was sent.",
    )


class ApproveArguments(SessionReference):
    """`opencode-approve`."""

    approval_id: Name = Field(
        alias="approvalId", description="The `id` of one of `pendingApprovals`."
    )
    decision: Literal["allow", "reject"] = Field(
        description="`allow`: yes, this once, or the answers to a question; `reject`: no."
    )
    feedback: Annotated[str, Field(min_length=1, max_length=10_000), NotBlank] | None = Field(
        None,
        description="With `reject` of a permission: what the agent should do instead.",
    )
    answers: list[list[Annotated[str, Field(max_length=10_000)]]] | None = Field(
        None,
        description="Required with `allow` of a question: for each of its questions, in order, a"
        " list: option labels (several if `multiple`), or your own text if `custom`.",
    )


class EndArguments(SessionReference):
    """`opencode-end`."""

    action: Literal["delete", "archive"] | None = Field(
        None,
        description="`delete` destroys the conversation in OpenCode; `archive` keeps it there,"
        " hidden and readable, with no way back.",
    )

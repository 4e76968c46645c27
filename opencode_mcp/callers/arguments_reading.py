"""What callers send to the tools that only look: one strict model a tool (contract §2)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from opencode_mcp.callers.argument_kinds import (
    MAX_BATCH,
    MAX_PAGE,
    MAX_WAIT_S,
    OUTPUT_TEXT,
    Arguments,
    Name,
    NotBool,
    OutputChars,
    SessionReference,
)


class StatusArguments(SessionReference):
    """`opencode-status`."""

    ids: Annotated[list[Name], Field(min_length=1, max_length=MAX_BATCH)] | None = Field(
        None, description="Several sessions at once, instead of one id."
    )
    wait_seconds: Annotated[int, Field(ge=0, le=MAX_WAIT_S), NotBool] | None = Field(
        None,
        alias="wait-seconds",
        description="With ids: how long this call watches, in seconds, until there is news: a turn"
        " is over or waits for an answer. 0, the default, answers with what is known now.",
    )
    wait_for: Literal["any", "all"] | None = Field(
        None,
        alias="wait-for",
        description="With `ids`: return when one of them has news, or when all have. Default any.",
    )
    offset: Annotated[int, Field(ge=0), NotBool] | None = Field(
        None, description="Without an id: how many sessions to skip. Default 0."
    )
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE), NotBool] | None = Field(
        None, description="Without an id: how many sessions to list. Default 20."
    )
    detail: Literal["standard", "compact"] | None = Field(
        None, description="`compact`: without tool calls, files, costs and times."
    )
    max_output_chars: OutputChars | None = Field(
        None,
        alias="max-output-chars",
        description=f"With ids: {OUTPUT_TEXT[0].lower()}{OUTPUT_TEXT[1:]}. Several share what there"
        " is room for.",
    )


class InfoArguments(Arguments):
    """`opencode-info`."""

    section: Literal["server", "models", "agents", "roots"] | None = Field(
        None,
        description="What to tell: this server, the models or agents of a folder, or where sessions"
        " may run.",
    )
    cwd: str | None = Field(
        None,
        max_length=4096,
        description="With models or agents: the folder they are for, as in opencode. Omitted: the"
        " default folder.",
    )
    provider: Name | None = Field(None, description="With models: only this provider's, by its id.")
    offset: Annotated[int, Field(ge=0), NotBool] | None = Field(
        None, description="With a list: how many entries to skip. Default 0."
    )
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE), NotBool] | None = Field(
        None, description="With a list: how many entries at most. Default 20."
    )
    snapshot_id: Name | None = Field(
        None,
        alias="snapshot-id",
        description="With a list: `snapshotId` of the page before, so that nothing moved since.",
    )

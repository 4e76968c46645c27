"""What callers send to the tools that only look: one strict model a tool (contract §2)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from opencode_mcp.callers.argument_kinds import (
    DETAIL_TEXT,
    MAX_BATCH,
    MAX_OUTPUT_PAGE,
    MAX_PAGE,
    MAX_WAIT_S,
    Arguments,
    Name,
    NotBool,
    NotHuge,
    OutputChars,
    SessionReference,
)


class StatusArguments(SessionReference):
    """`opencode-status`."""

    session_id: Name | None = Field(
        None, alias="sessionId", description="One session's id; at most one of the three."
    )
    ids: Annotated[list[Name], Field(min_length=1, max_length=MAX_BATCH)] | None = Field(
        None, description="Several sessions at once, each named once, instead of one id."
    )
    wait_seconds: Annotated[int, Field(ge=0, le=MAX_WAIT_S), NotBool] | None = Field(
        None,
        alias="wait-seconds",
        description="With an id or ids: how long this call watches, in seconds, for news: a turn is"
        " over or waits for an answer. 0 answers at once.",
    )
    wait_for: Literal["any", "all"] | None = Field(
        None,
        alias="wait-for",
        description="With `ids`: return when one of them has news, or when all have.",
    )
    offset: Annotated[int, Field(ge=0), NotBool, NotHuge] | None = Field(
        None, description="Without an id: how many sessions to skip."
    )
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE), NotBool] | None = Field(
        None, description="Without an id: how many sessions to list."
    )
    detail: Literal["standard", "compact"] | None = Field(None, description=DETAIL_TEXT + ".")
    max_output_chars: OutputChars | None = Field(
        None,
        alias="max-output-chars",
        description="With an id or ids: how long an answer may be, as in opencode.",
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
    offset: Annotated[int, Field(ge=0), NotBool, NotHuge] | None = Field(
        None, description="With a list: how many entries to skip."
    )
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE), NotBool] | None = Field(
        None, description="With a list: how many entries at most."
    )
    snapshot_id: Name | None = Field(
        None,
        alias="snapshot-id",
        description="With a list: `snapshotId` of the page before, so that nothing moved since.",
    )


class OutputArguments(SessionReference):
    """`opencode-output`."""

    turn: Annotated[int, Field(ge=1), NotBool, NotHuge] = Field(
        description="Which turn, by its number: 1 is the session's first; results name theirs."
    )
    section: Literal["answer", "tool-calls", "structured-output", "diff"] | None = Field(
        None,
        description="`answer`: its text; `tool-calls`: each call with input and output;"
        " `structured-output`: its JSON; `diff`: files it changed.",
    )
    offset: Annotated[int, Field(ge=0), NotBool, NotHuge] | None = Field(
        None,
        description="Where the page begins: nextOffset of the page before. In Unicode code points;"
        " for diff-view stat in files.",
    )
    limit: Annotated[int, Field(ge=1, le=MAX_OUTPUT_PAGE), NotBool] | None = Field(
        None,
        description="How long the page may be, in the unit of offset; it may be shorter. Default"
        " 20000 code points, or 100 files.",
    )
    diff_view: Literal["stat", "patch"] | None = Field(
        None,
        alias="diff-view",
        description="With section diff. `stat` lists the changed files with their index; `patch` is"
        " the text of their changes.",
    )
    file_index: Annotated[int, Field(ge=0), NotBool, NotHuge] | None = Field(
        None,
        alias="file-index",
        description="With diff-view patch: only this file, by its index in `stat`. Omitted: all"
        " files, one after the other.",
    )
    snapshot_id: Name | None = Field(
        None,
        alias="snapshot-id",
        description="`snapshotId` of the first page: this page is then of the very same content.",
    )

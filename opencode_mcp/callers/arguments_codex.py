"""What callers of the removed Codex MCP server send (contract §2, its last row).

The schemas are those that the last version with `codex mcp-server`, 0.153.4, listed: the same
properties, kinds and values, nothing required but the prompt. So the bounds of a text stand in
validators, which a schema does not show, and the operator's ceilings are checked in the call.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from opencode_mcp.callers.argument_kinds import (
    MAX_NAME_CHARS,
    MAX_PROMPT_CHARS,
    Arguments,
    NotBlank,
)

_MAX_PATH_CHARS = 4096
_MAX_INSTRUCTIONS_CHARS = 100_000


def _up_to(limit: int) -> AfterValidator:
    """Return a validator that refuses what no text may be, and leaves the schema as it is."""

    def check(value: str) -> str:
        if len(value) > limit:
            msg = f"should have at most {limit} characters"
            raise ValueError(msg)
        try:
            value.encode()
        except UnicodeEncodeError:  # a bound in the schema would have told (pydantic)
            msg = "holds half of a surrogate pair"
            raise ValueError(msg) from None
        return value

    return AfterValidator(check)


_Text = Annotated[str, _up_to(_MAX_INSTRUCTIONS_CHARS)]
_Id = Annotated[str, _up_to(MAX_NAME_CHARS), NotBlank]
_Prompt = Annotated[str, _up_to(MAX_PROMPT_CHARS), NotBlank]


class CodexArguments(Arguments):
    """`codex`."""

    prompt: _Prompt = Field(
        description="The task, complete in itself: the agent does not see your conversation."
    )
    cwd: Annotated[str, _up_to(_MAX_PATH_CHARS)] | None = Field(
        None,
        description="The folder the agent works in, inside the allowed roots; a relative one is"
        " below the default folder.",
    )
    model: Annotated[str, _up_to(MAX_NAME_CHARS), NotBlank] | None = Field(
        None,
        description="`provider/model`, or a bare name that one provider of OpenCode has. Others are"
        " refused. Omitted: the default.",
    )
    sandbox: Literal["read-only", "workspace-write", "danger-full-access"] | None = Field(
        None,
        description="What the agent is denied. read-only: edits, shell, and paths outside cwd;"
        " workspace-write: paths outside cwd; danger-full-access: nothing. Omitted:"
        " the default.",
    )
    approval_policy: Literal["on-request", "never"] | None = Field(
        None,
        alias="approval-policy",
        description="When the agent asks for leave: on-request, the person at your client answers,"
        " and without one it is rejected; never, it is rejected. Omitted: the default.",
    )
    base_instructions: _Text | None = Field(
        None,
        alias="base-instructions",
        description="Instructions for the thread, appended to the system prompt.",
    )
    developer_instructions: _Text | None = Field(
        None,
        alias="developer-instructions",
        description="Further instructions, appended likewise.",
    )
    compact_prompt: str | None = Field(
        None, alias="compact-prompt", description="Not supported: refused. Leave it out."
    )
    config: dict[str, Any] | None = Field(None, description="Not supported: refused. Leave it out.")


class CodexReplyArguments(Arguments):
    """`codex-reply`."""

    prompt: _Prompt = Field(description="The next prompt; the agent remembers earlier turns.")
    thread_id: _Id | None = Field(
        None,
        alias="threadId",
        description="The thread's id, as codex returned it.",
    )
    conversation_id: _Id | None = Field(
        None, alias="conversationId", description="The same (deprecated); not both."
    )

    @property
    def references(self) -> dict[str, str]:
        """The ids that were given, by their names on the wire."""
        given = {"threadId": self.thread_id, "conversationId": self.conversation_id}
        return {name: value for name, value in given.items() if value is not None}

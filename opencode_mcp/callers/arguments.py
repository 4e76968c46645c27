"""What callers send: one strict model a tool (contract §2).

Unknown properties are refused, `null` counts as absent, a number sent as text is taken. The
descriptions are written for the model that fills them in.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

MAX_PROMPT_CHARS = 2_000_000
#: of an id (contract §1), and of the names of models, agents and variants
MAX_NAME_CHARS = 200
MAX_WAIT_S = 600
MAX_PAGE = 100
MAX_BATCH = 16
MAX_CANCEL_WAIT_MS = 20_000


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        msg = "should be a number, not true or false"
        raise ValueError(msg)  # noqa: TRY004 - pydantic turns only ValueError into its own error
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        msg = "should not be empty or blank"
        raise ValueError(msg)
    return value


#: after the bounds, or they would be missing from the schema
NotBool = BeforeValidator(_no_bool)
Prompt = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_PROMPT_CHARS,
        description="The task, complete in itself: the agent sees neither your conversation nor"
        " your files unless they are in its folder.",
    ),
    AfterValidator(_not_blank),
]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
Model = Annotated[str, Field(max_length=MAX_NAME_CHARS, pattern=r"^[^/\s]+/\S+$")]
Instructions = Annotated[str, Field(max_length=100_000)]

_MODEL = "As `provider/model`, one that OpenCode has set up. Wrong names are refused before sending"
_AGENT = "An OpenCode agent, e.g. `build` (works) or `plan` (only plans)"
_VARIANT = "The model's variant, e.g. a reasoning effort its provider offers"
_DEVELOPER = "Further instructions, appended to the agent's system prompt"
_WAIT = (
    "How long this call watches, in seconds. When it runs out, the turn goes on and the answer"
    " says so; 0 returns as soon as OpenCode has the prompt"
)
_TIMEOUT = "The turn's own time limit in seconds; when it runs out the turn is stopped (`timeout`)"
_ID = "The session's id, as `opencode` returned it. Give exactly one of the three ids"


class Arguments(BaseModel):
    """The base: strict, and able to say its own schema."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def tool_schema(cls, **changes: dict[str, Any]) -> dict[str, Any]:
        """Return the input schema: no titles, no `null` branches; `changes` by property."""
        schema = cls.model_json_schema(by_alias=True)
        properties = {
            name: _plain({**prop, **changes.get(name, {})})
            for name, prop in schema["properties"].items()
        }
        bare: dict[str, Any] = {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
        if "required" in schema:
            bare["required"] = schema["required"]
        return bare


def _plain(prop: dict[str, Any]) -> dict[str, Any]:
    kinds = [kind for kind in prop.pop("anyOf", []) if kind != {"type": "null"}]
    prop.pop("title", None)
    if prop.get("default", ...) is None:
        del prop["default"]
    return {**(kinds[0] if kinds else {}), **prop}


class SessionReference(Arguments):
    """Exactly one of three names for the same id; `null` counts as absent (contract §1)."""

    session_id: Name | None = Field(None, alias="sessionId", description=_ID + ".")
    thread_id: Name | None = Field(None, alias="threadId", description="The same, Codex's name.")
    conversation_id: Name | None = Field(
        None, alias="conversationId", description="The same, Codex's older name (deprecated)."
    )

    @property
    def references(self) -> dict[str, str]:
        """The ids that were given, by their names on the wire."""
        given = {
            "sessionId": self.session_id,
            "threadId": self.thread_id,
            "conversationId": self.conversation_id,
        }
        return {name: value for name, value in given.items() if value is not None}


class StartArguments(Arguments):
    """`opencode`."""

    prompt: Prompt
    cwd: str | None = Field(
        None,
        max_length=4096,
        description="The folder the agent works in: absolute, inside the allowed roots. Fixed for"
        " the session.",
    )
    model: Model | None = Field(None, description=_MODEL + ".")
    agent: Name | None = Field(None, description=_AGENT + ".")
    variant: Name | None = Field(None, description=_VARIANT + ".")
    base_instructions: Instructions | None = Field(
        None,
        alias="base-instructions",
        description="Instructions for the whole session, appended to the agent's system prompt.",
    )
    developer_instructions: Instructions | None = Field(
        None,
        alias="developer-instructions",
        description=_DEVELOPER + "; kept for later turns until a reply replaces them.",
    )
    sandbox: Literal["read-only", "workspace-write", "danger-full-access"] | None = Field(
        None,
        description="What the agent is denied, for the whole session. read-only: edits, shell, and"
        " paths outside cwd; workspace-write: paths outside cwd; danger-full-access: nothing. A"
        " guide rail for the agent, no jail.",
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
    timeout_seconds: Annotated[int, Field(ge=1), NotBool] | None = Field(
        None, alias="timeout-seconds", description=_TIMEOUT
    )
    wait_seconds: Annotated[int, Field(ge=0, le=MAX_WAIT_S), NotBool] | None = Field(
        None, alias="wait-seconds", description=_WAIT
    )


class ReplyArguments(SessionReference):
    """`opencode-reply`."""

    prompt: Prompt
    model: Model | None = Field(None, description=_MODEL + "; replaces the session's.")
    agent: Name | None = Field(None, description=_AGENT + "; replaces the session's.")
    variant: Name | None = Field(None, description=_VARIANT + "; replaces the session's.")
    developer_instructions: Instructions | None = Field(
        None,
        alias="developer-instructions",
        description=_DEVELOPER + "; replace those of earlier turns.",
    )
    timeout_seconds: Annotated[int, Field(ge=1), NotBool] | None = Field(
        None, alias="timeout-seconds", description=_TIMEOUT
    )
    wait_seconds: Annotated[int, Field(ge=0, le=MAX_WAIT_S), NotBool] | None = Field(
        None, alias="wait-seconds", description=_WAIT
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


class CancelArguments(SessionReference):
    """`opencode-cancel`."""

    turn_id: Name | None = Field(
        None,
        alias="turnId",
        description="Stop this turn only, as `turnId` named it: if a later one runs by now, nothing"
        " is stopped. Omitted: the newest turn.",
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
        description="`allow` grants a permission this once or answers a question; `reject` says no."
    )
    feedback: (
        Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(_not_blank)] | None
    ) = Field(
        None,
        description="With `reject` of a permission: what the agent should do instead; its turn goes"
        " on. Without it the turn ends.",
    )
    answers: list[list[Annotated[str, Field(max_length=10_000)]]] | None = Field(
        None,
        description="With `allow` of a question, required: one list for each of its questions, in"
        " order, of option labels or a text of your own.",
    )


class EndArguments(SessionReference):
    """`opencode-end`."""

    action: Literal["delete", "archive"] | None = Field(
        None,
        description="`delete` destroys the conversation in OpenCode; `archive` hides it there and"
        " keeps it readable (OpenCode has no way to un-archive).",
    )

"""What OpenCode sends, as far as we read it, and nothing more.

Unknown fields are ignored and unknown kinds are kept as text: OpenCode changes often, and what we
do not read must not break us. OpenCode's camelCase names and milliseconds end here.
Shapes: facts 1.1, 2.1, 3.5 and 5, read again on 1.18.33.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from opencode_mcp.opencode.fields import Count, FromOpencode, Moment
from opencode_mcp.opencode.generation import VERSION_PATTERN
from opencode_mcp.opencode.message_error import MessageError
from opencode_mcp.opencode.offers import (
    Abilities,
    Capabilities,
    Limit,
    ModelLimit,
    ModelName,
    Text,
    VariantNames,
)
from opencode_mcp.opencode.tool_state import FilePaths, ToolState


class Health(FromOpencode):
    """`GET /global/health`. Invalid for another generation: its routes mean something else."""

    healthy: bool
    version: Annotated[str, Field(pattern=VERSION_PATTERN)]


class Paths(FromOpencode):
    """`GET /path`: `directory` is the folder the answer is about, `home` its user's."""

    directory: str
    home: str = ""


class SessionTime(FromOpencode):
    """When a session was made; `archived` is present once it is archived, even as 0 (facts 6.5)."""

    created: Moment
    archived: int | float | None = None


class RemoteSession(FromOpencode):
    """A session as OpenCode has it."""

    id: str
    directory: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    time: SessionTime

    @property
    def is_archived(self) -> bool:
        """Whether the session is archived: the field's presence counts, not its value."""
        return self.time.archived is not None


class RemoteStatus(FromOpencode):
    """One entry of `GET /session/status`. Idle sessions have none (facts 1.7).

    `type` is `busy` or `retry`; the other fields come with `retry` (facts 8.5).
    """

    type: str
    attempt: int | None = None
    message: str | None = None
    next: Moment | None = None


class MessageTime(FromOpencode):
    """When a message was made; without `completed` it is unfinished, or was cut (facts 9.2)."""

    created: Moment
    completed: Moment | None = None


class CacheTokens(FromOpencode):
    """Tokens read from and written to the provider's cache."""

    read: Count = 0
    write: Count = 0


class Tokens(FromOpencode):
    """What one step used."""

    input: Count = 0
    output: Count = 0
    reasoning: Count = 0
    cache: CacheTokens = CacheTokens()


class FileDiff(FromOpencode):
    """One changed file in a user message's summary."""

    file: str = ""


class UserSummary(FromOpencode):
    """What OpenCode says that a turn changed; kept on the turn's user message."""

    diffs: list[FileDiff] = Field(default_factory=list)


class MessagePath(FromOpencode):
    """Where an assistant message ran: its folder, and the worktree's root (`/` without git)."""

    cwd: str = ""
    root: str = ""


class MessageInfo(FromOpencode):
    """A message without its parts."""

    id: str
    session_id: str = Field(alias="sessionID")
    role: str
    time: MessageTime
    agent: str | None = None
    model_id: str | None = Field(default=None, alias="modelID")
    provider_id: str | None = Field(default=None, alias="providerID")
    finish: str | None = None
    error: MessageError | None = None
    cost: float = 0.0
    tokens: Tokens = Tokens()
    path: MessagePath = MessagePath()
    #: a user message has an object here; an assistant message `true` where it is a compaction
    summary: UserSummary | bool | None = None


def _run_by_provider(metadata: object) -> object:
    return isinstance(metadata, dict) and metadata.get("providerExecuted") is True


class Part(FromOpencode):
    """One part of a message; which fields are set depends on `type`."""

    id: str
    type: str
    call_id: str | None = Field(default=None, alias="callID")
    text: str | None = None
    synthetic: bool = False
    ignored: bool = False
    tool: str | None = None
    state: ToolState | None = None
    #: a `patch` part, where OpenCode keeps snapshots (git): what changed during its step
    files: FilePaths = ()
    #: the provider runs this tool itself, so that no further step follows from it
    is_run_by_provider: Annotated[bool, BeforeValidator(_run_by_provider)] = Field(
        default=False, alias="metadata"
    )


class Message(FromOpencode):
    """A message with its parts."""

    info: MessageInfo
    parts: list[Part] = Field(default_factory=list)


class AskingCall(FromOpencode):
    """The tool call that an ask holds up."""

    message_id: str = Field(alias="messageID")
    call_id: str = Field(alias="callID")


class PermissionRequest(FromOpencode):
    """A pending "may I?". `tool` is there unless OpenCode itself asks."""

    id: str
    session_id: str = Field(alias="sessionID")
    tool: AskingCall | None = None
    permission: str
    patterns: list[str] = Field(default_factory=list)


class QuestionOption(FromOpencode):
    """One answer that the agent offers."""

    label: str
    description: str = ""


class QuestionItem(FromOpencode):
    """One of the questions of a request."""

    question: str
    header: str = ""
    options: list[QuestionOption] = Field(default_factory=list)
    multiple: bool = False
    #: an answer in one's own words is taken too; so it is where OpenCode does not say
    custom: bool = True


class QuestionRequest(FromOpencode):
    """A pending "which?"."""

    id: str
    session_id: str = Field(alias="sessionID")
    tool: AskingCall | None = None
    questions: list[QuestionItem] = Field(default_factory=list)


class Agent(FromOpencode):
    """An agent OpenCode offers. Hidden helpers are listed too (facts 11.4).

    Of an agent that a configuration names, what it leaves out is `null` (tried on 1.18.33).
    """

    name: str
    hidden: bool | None = None
    description: Text = None
    #: `primary`, `subagent` or `all`
    mode: Text = None
    model: ModelName = None


class ProviderModel(FromOpencode):
    """A model of a provider."""

    id: str
    name: Text = None
    limit: Limit = ModelLimit()
    capabilities: Abilities = Capabilities()
    variants: VariantNames = ()


class Provider(FromOpencode):
    """A provider with its models, by id."""

    id: str
    models: dict[str, ProviderModel] = Field(default_factory=dict)


class Providers(FromOpencode):
    """`GET /config/providers`."""

    providers: list[Provider] = Field(default_factory=list)


class KnownProvider(FromOpencode):
    """A provider that OpenCode could use. `env`: the variables that may hold its key."""

    id: str
    env: list[str] = Field(default_factory=list)


class Catalogue(FromOpencode):
    """`GET /provider`. `connected`: those that are set up."""

    all: list[KnownProvider] = Field(default_factory=list)
    connected: list[str] = Field(default_factory=list)

"""What OpenCode sends, as far as we read it, and nothing more.

Unknown fields are ignored and unknown kinds are kept as text: OpenCode changes often, and what we
do not read must not break us. OpenCode's camelCase names and milliseconds end here.
Shapes: facts 1.1, 2.1, 3.5 and 5, read again on 1.18.33.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _moment(value: object) -> object:
    """Turn OpenCode's milliseconds since 1970 into an aware UTC datetime."""
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000, UTC)
    return value


Moment = Annotated[datetime, BeforeValidator(_moment)]


class _FromOpencode(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


#: another generation has other routes, and answers ours with its web app (facts 8.2, case 27)
NOT_OURS = "this is not an OpenCode 1.x (tested with 1.18), which this server drives"


class Health(_FromOpencode):
    """`GET /global/health`. Invalid for another generation: its routes mean something else."""

    healthy: bool
    #: a development build has no number that could be compared, and is let in
    version: Annotated[str, Field(pattern=r"^([01]\.|[^0-9])")]


class Paths(_FromOpencode):
    """`GET /path`: `directory` is the folder the answer is about, `home` its user's."""

    directory: str
    home: str = ""


class SessionTime(_FromOpencode):
    """When a session was made; `archived` is present once it is archived, even as 0 (facts 6.5)."""

    created: Moment
    archived: int | float | None = None


class RemoteSession(_FromOpencode):
    """A session as OpenCode has it."""

    id: str
    directory: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    time: SessionTime

    @property
    def is_archived(self) -> bool:
        """Whether the session is archived: the field's presence counts, not its value."""
        return self.time.archived is not None


class RemoteStatus(_FromOpencode):
    """One entry of `GET /session/status`. Idle sessions have none (facts 1.7).

    `type` is `busy` or `retry`; the other fields come with `retry` (facts 8.5).
    """

    type: str
    attempt: int | None = None
    message: str | None = None
    next: Moment | None = None


class MessageError(_FromOpencode):
    """Why a message failed. `data` may hold provider headers and bodies: never pass it on whole."""

    name: str
    data: dict[str, Any] = Field(default_factory=dict)

    @property
    def message(self) -> str:
        """The error's own text, or its name."""
        text = self.data.get("message")
        return text if isinstance(text, str) and text else self.name

    @property
    def status_code(self) -> int | None:
        """The provider's HTTP status, where there is one."""
        code = self.data.get("statusCode")
        return code if isinstance(code, int) else None

    @property
    def is_retryable(self) -> bool:
        """Whether OpenCode holds that the fault may pass."""
        return self.data.get("isRetryable") is True


class MessageTime(_FromOpencode):
    """When a message was made; without `completed` it is unfinished, or was cut (facts 9.2)."""

    created: Moment
    completed: Moment | None = None


class CacheTokens(_FromOpencode):
    """Tokens read from and written to the provider's cache."""

    read: int = 0
    write: int = 0


class Tokens(_FromOpencode):
    """What one step used."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: CacheTokens = CacheTokens()


class FileDiff(_FromOpencode):
    """One changed file in a user message's summary."""

    file: str = ""


class UserSummary(_FromOpencode):
    """What OpenCode says that a turn changed; kept on the turn's user message."""

    diffs: list[FileDiff] = Field(default_factory=list)


class MessageInfo(_FromOpencode):
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
    #: a user message has an object here; an assistant message `true` where it is a compaction
    summary: UserSummary | bool | None = None


class ToolState(_FromOpencode):
    """Where a tool call stands: `pending`, `running`, `completed` or `error`."""

    status: str
    title: str | None = None
    error: str | None = None


class Part(_FromOpencode):
    """One part of a message; which fields are set depends on `type`."""

    id: str
    type: str
    text: str | None = None
    synthetic: bool = False
    ignored: bool = False
    tool: str | None = None
    state: ToolState | None = None


class Message(_FromOpencode):
    """A message with its parts."""

    info: MessageInfo
    parts: list[Part] = Field(default_factory=list)


class PermissionRequest(_FromOpencode):
    """A pending "may I?"."""

    id: str
    session_id: str = Field(alias="sessionID")
    permission: str
    patterns: list[str] = Field(default_factory=list)


class QuestionOption(_FromOpencode):
    """One answer that the agent offers."""

    label: str
    description: str = ""


class QuestionItem(_FromOpencode):
    """One of the questions of a request."""

    question: str
    header: str = ""
    options: list[QuestionOption] = Field(default_factory=list)
    multiple: bool = False


class QuestionRequest(_FromOpencode):
    """A pending "which?"."""

    id: str
    session_id: str = Field(alias="sessionID")
    questions: list[QuestionItem] = Field(default_factory=list)


class Agent(_FromOpencode):
    """An agent OpenCode offers. Hidden helpers are listed too (facts 11.4)."""

    name: str
    hidden: bool = False


class ProviderModel(_FromOpencode):
    """A model of a provider."""

    id: str


class Provider(_FromOpencode):
    """A provider with its models, by id."""

    id: str
    models: dict[str, ProviderModel] = Field(default_factory=dict)


class Providers(_FromOpencode):
    """`GET /config/providers`."""

    providers: list[Provider] = Field(default_factory=list)

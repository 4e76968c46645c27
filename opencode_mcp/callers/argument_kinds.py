"""What arguments are made of: their base, their kinds, and the sentences that several share.

Unknown properties are refused, `null` counts as absent, a number sent as text is taken. The
descriptions are written for the model that fills them in.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

MAX_PROMPT_CHARS = 2_000_000
#: of an id (contract §1), and of the names of models, agents and variants
MAX_NAME_CHARS = 200
MAX_WAIT_S = 600
MAX_PAGE = 100
MAX_BATCH = 16
MAX_CANCEL_WAIT_MS = 20_000
#: of an answer: less says nothing, more does not fit into a result (contract §3)
MIN_OUTPUT_CHARS, MAX_OUTPUT_CHARS = 200, 40_000
#: of a page of an output, in Unicode code points
MAX_OUTPUT_PAGE = 40_000
#: of any number: the largest that JSON carries safely (RFC 7493), and the database takes it
MAX_NUMBER = 2**53 - 1


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        msg = "should be a number, not true or false"
        raise ValueError(msg)  # noqa: TRY004 - pydantic turns only ValueError into its own error
    return value


def _not_huge(value: int) -> int:
    if value > MAX_NUMBER:
        msg = f"should be less than or equal to {MAX_NUMBER}"
        raise ValueError(msg)
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        msg = "should not be empty or blank"
        raise ValueError(msg)
    return value


#: after the bounds, or they would be missing from the schema
NotBool = BeforeValidator(_no_bool)
NotBlank = AfterValidator(_not_blank)
#: for a number without a bound of its own; not in the schema, where nobody needs it
NotHuge = AfterValidator(_not_huge)
Prompt = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_PROMPT_CHARS,
        description="The task, complete in itself: the agent sees neither your conversation nor"
        " your files unless they are in its folder.",
    ),
    NotBlank,
]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
Model = Annotated[str, Field(max_length=MAX_NAME_CHARS, pattern=r"^[^/\s]+/\S+$")]
#: printable ASCII without spaces: it is shown in results and in errors
RequestId = Annotated[str, Field(max_length=MAX_NAME_CHARS, pattern=r"^[!-~]+$")]
Instructions = Annotated[str, Field(max_length=100_000)]
OutputChars = Annotated[int, Field(ge=MIN_OUTPUT_CHARS, le=MAX_OUTPUT_CHARS), NotBool]
OutputSchema = dict[str, Any]

MODEL_TEXT = (
    "As `provider/model`, one that opencode-info lists; others are refused. Omitted: the default"
)
AGENT_TEXT = (
    "An OpenCode agent, e.g. `build` (works) or `plan` (only plans); opencode-info lists them."
    " Omitted: the default"
)
VARIANT_TEXT = "One of the model's variants in opencode-info, e.g. a reasoning effort. Not checked"
DEVELOPER_TEXT = "Further instructions, appended to the agent's system prompt"
WAIT_TEXT = (
    "How long this call watches, in seconds; then the turn goes on and the answer says so. 0"
    " returns as soon as OpenCode has the prompt"
)
TIMEOUT_TEXT = "The turn's own time limit, in seconds: then it is stopped (`timeout`)"
DETAIL_TEXT = "`compact`: the result without tool calls, files, costs and times"
OUTPUT_TEXT = (
    "How long the answer may be, in characters of JSON; of a longer one head and tail are kept"
)
SCHEMA_TEXT = (
    "A JSON Schema (2020-12, $ref only within it) that this turn's answer is to fit; see"
    " structuredOutput and structuredOutputStatus"
)
REQUEST_TEXT = (
    "Your name for this call. Repeated with the same arguments within 24 h, it joins the first"
    " call's turn and sends nothing; with others it is REQUEST_ID_CONFLICT"
)
ID_TEXT = "The session's id. Give exactly one of the three"


class Arguments(BaseModel):
    """The base: strict, and able to say its own schema."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def references(self) -> dict[str, str]:
        """The ids of a session that were given, by their names on the wire."""
        return {}

    @classmethod
    def tool_schema(cls, **changes: dict[str, Any]) -> dict[str, Any]:
        """Return the input schema: no titles, no `null` branches; `changes` by property."""
        schema = cls._own_schema()
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

    @classmethod
    @cache
    def _own_schema(cls) -> dict[str, Any]:
        """Return pydantic's schema, never to be changed: the same each time, and slow to make."""
        return cls.model_json_schema(by_alias=True)


def _plain(prop: dict[str, Any]) -> dict[str, Any]:
    kinds = [kind for kind in prop.pop("anyOf", []) if kind != {"type": "null"}]
    prop.pop("title", None)
    if prop.get("default", ...) is None:
        del prop["default"]
    bare = {**(kinds[0] if kinds else {}), **prop}
    if bare.get("minLength") == 1:  # that an empty text is none goes without saying; each has one
        del bare["minLength"]
    return bare


class SessionReference(Arguments):
    """Exactly one of three names for the same id; `null` counts as absent (contract §1)."""

    session_id: Name | None = Field(None, alias="sessionId", description=ID_TEXT + ".")
    thread_id: Name | None = Field(None, alias="threadId", description="The same, as in Codex.")
    conversation_id: Name | None = Field(
        None, alias="conversationId", description="The same (deprecated)."
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

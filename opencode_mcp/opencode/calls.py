"""A request as an endpoint describes it, and its answer: the words that `http.py` speaks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from opencode_mcp.opencode_errors import OpencodeError, OpencodeProtocolError, OpencodeRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import TypeAdapter

T = TypeVar("T")

#: more than any list, session or catalogue measured (facts 11.2)
DEFAULT_MAX_BYTES = 4 * 1024 * 1024
#: a page of messages holds whole prompts and tool outputs; 60 MB was seen (facts 8.6)
MESSAGES_MAX_BYTES = 128 * 1024 * 1024

#: the name of a route that is not among `ROUTES`
OTHER_ROUTE = "other"

#: one escape in a JSON string: a pair of surrogates, or one of them alone, or any other
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)
#: one of our own field names; whatever else stands in a place (an id, a file name) is content
_FIELD = re.compile(r"[A-Za-z_]{1,40}")


class CallKind(Enum):
    """What a repetition of the call would do; decides about trying again."""

    READ = auto()
    CHANGE = auto()
    SUBMISSION = auto()


#: what we ask OpenCode for, by the name that metrics and logs have for it: no id is in it
ROUTES = {
    "GET /global/health": CallKind.READ,
    "GET /global/event": CallKind.READ,
    "GET /path": CallKind.READ,
    "GET /agent": CallKind.READ,
    "GET /config/providers": CallKind.READ,
    "GET /provider": CallKind.READ,
    "POST /instance/dispose": CallKind.CHANGE,
    "POST /session": CallKind.SUBMISSION,
    "GET /session": CallKind.READ,
    "GET /session/status": CallKind.READ,
    "GET /session/{id}": CallKind.READ,
    "PATCH /session/{id}": CallKind.CHANGE,
    "DELETE /session/{id}": CallKind.CHANGE,
    "GET /session/{id}/children": CallKind.READ,
    "GET /session/{id}/message": CallKind.READ,
    "GET /session/{id}/message/{id}": CallKind.READ,
    "POST /session/{id}/prompt_async": CallKind.SUBMISSION,
    "POST /session/{id}/abort": CallKind.CHANGE,
    "GET /permission": CallKind.READ,
    "POST /permission/{id}/reply": CallKind.SUBMISSION,
    "GET /question": CallKind.READ,
    "POST /question/{id}/reply": CallKind.SUBMISSION,
    "POST /question/{id}/reject": CallKind.CHANGE,
    OTHER_ROUTE: CallKind.READ,
}
_WORDS = frozenset(word for route in ROUTES for word in route.partition(" ")[2].split("/"))


@dataclass(frozen=True, slots=True)
class Call:
    """One request as an endpoint describes it; `path` is made with `segment` for every id."""

    kind: CallKind
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    #: the only status that is a success; a 200 has a JSON body, a 204 none
    status: int = 200
    #: limit for the answer's body
    max_bytes: int = DEFAULT_MAX_BYTES
    content_type: str = "application/json"

    @property
    def route(self) -> str:
        """The route without what varies: one of `ROUTES`."""
        words = [word if word in _WORDS else "{id}" for word in self.path.split("/")]
        route = f"{self.method} {'/'.join(words)}"
        return route if route in ROUTES else OTHER_ROUTE

    @property
    def may_change(self) -> bool:
        """Whether the call may have had an effect although no good answer came."""
        return self.kind is not CallKind.READ

    def error(
        self,
        kind: type[OpencodeError],
        text: str,
        *,
        outcome_unknown: bool = False,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> OpencodeError:
        """Make an error about this call."""
        return kind(
            f"{self.method} {self.path}: {text}",
            method=self.method,
            path=self.path,
            status=status,
            outcome_unknown=outcome_unknown,
            retry_after_s=retry_after_s,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """A success: the body, and the cursor to older items if the answer was a page."""

    body: bytes
    cursor: str | None


def segment(identifier: str) -> str:
    """Quote an id so that it stays one segment of a path, whatever is in it.

    Raises OpencodeRefusedError for what no quoting keeps in its place: nothing, and only dots.
    """
    if not identifier.strip("."):
        message = f"{identifier!r} is not an OpenCode id"
        raise OpencodeRefusedError(message)
    return quote(identifier, safe="")


def decode(call: Call, answer: Answer, shape: TypeAdapter[T]) -> T:
    """Validate the JSON of an answer; raises OpencodeProtocolError, which never quotes it.

    OpenCode sends half an emoji where a text was cut within one (tried on 1.18.33); that is no
    Unicode, and becomes U+FFFD here, so that it does not make a whole page unreadable.
    """
    try:
        return shape.validate_json(_whole_characters(answer.body))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        text = f"the answer is not what we know: {fault['type']} at {_place(fault['loc'])}"
        # from None: pydantic's own text quotes the input.
        raise call.error(OpencodeProtocolError, text, outcome_unknown=call.may_change) from None


def _whole_characters(body: bytes) -> bytes:
    if b"\\ud" not in body and b"\\uD" not in body:
        return body
    return _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], body)


def _place(location: tuple[int | str, ...]) -> str:
    words = (str(part) if _FIELD.fullmatch(str(part)) else "*" for part in location)
    return ".".join(words) or "the top"

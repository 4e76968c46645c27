"""A turn's messages with all that they hold, for whoever pages through what a turn left.

Observers read the same messages again and again and without it (`models`): there a tool's output
is cut, its input is a digest, and of a changed file only the name is kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, TypeAdapter

from opencode_mcp.opencode.calls import MESSAGES_MAX_BYTES, Call, CallKind, decode, segment
from opencode_mcp.opencode.diffs import ChangedFiles  # noqa: TC001 - pydantic reads it
from opencode_mcp.opencode.fields import FromOpencode
from opencode_mcp.opencode.models import Message, MessageInfo, Part

if TYPE_CHECKING:
    from opencode_mcp.opencode.http import Http

#: of one call's input, and of its output, in characters. OpenCode cuts the output of its own tools
#: far below (50 KB); those of plugins and MCP servers need not be cut at all
MAX_DETAIL_CHARS = 1024 * 1024


def _bounded(text: str) -> str:
    left_out = len(text) - MAX_DETAIL_CHARS
    if left_out <= 0:
        return text
    return f"{text[:MAX_DETAIL_CHARS]}\n[… {left_out} more characters were not read …]"


def _text(value: object) -> str:
    return _bounded(value) if isinstance(value, str) else ""


def _json(value: object) -> str:
    return _bounded(json.dumps(value, ensure_ascii=False, default=str)) if value else ""


def _detail(state: object) -> object:
    """Take input and output of a tool's state, wherever the output is (facts 4.2)."""
    if not isinstance(state, dict):
        return {}
    metadata = state.get("metadata")
    shown = metadata.get("output") if isinstance(metadata, dict) else None
    output = state.get("output")
    return {
        "input": state.get("input"),
        "output": output if isinstance(output, str) else shown,
        "error": state.get("error"),
    }


class CallDetail(FromOpencode):
    """What a tool was called with, as JSON on one line, and what it answered."""

    input: Annotated[str, BeforeValidator(_json)] = ""
    output: Annotated[str, BeforeValidator(_text)] = ""
    #: why it failed, which may be all that it answered
    error: Annotated[str, BeforeValidator(_text)] = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it was left out."""
        return max(map(len, (self.input, self.output, self.error))) <= MAX_DETAIL_CHARS


class WholePart(Part):
    """A part with a tool call's input and output."""

    detail: Annotated[CallDetail, BeforeValidator(_detail)] = Field(
        default=CallDetail(), alias="state"
    )


class WholeInfo(MessageInfo):
    """A message without its parts, with the patches of what its turn changed."""

    changes: ChangedFiles = Field(default=None, alias="summary")


class WholeMessage(Message):
    """A message with everything in it."""

    info: WholeInfo
    parts: list[WholePart] = Field(default_factory=list)  # type: ignore[assignment] # frozen


@dataclass(frozen=True, slots=True)
class WholePage:
    """Messages, oldest first, and the cursor to the page before them; None: there is none."""

    messages: list[WholeMessage]
    before: str | None


_MESSAGE = TypeAdapter(WholeMessage)
_MESSAGES = TypeAdapter(list[WholeMessage])


class WholeMessageRoutes:
    """How the client reads whole messages. `OpencodeClient` tells of errors and of `timeout_s`."""

    _http: Http

    async def whole_messages(
        self,
        session_id: str,
        *,
        limit: int,
        before: str | None = None,
        timeout_s: float | None = None,
    ) -> WholePage:
        """Read the newest `limit` messages, or those before a cursor (facts 11.1)."""
        query = {"limit": str(limit)} | ({} if before is None else {"before": before})
        path = f"/session/{segment(session_id)}/message"
        call = Call(CallKind.READ, "GET", path, query, max_bytes=MESSAGES_MAX_BYTES)
        answer = await self._http.send(call, timeout_s=timeout_s)
        return WholePage(decode(call, answer, _MESSAGES), answer.cursor)

    async def whole_message(
        self, session_id: str, message_id: str, *, timeout_s: float | None = None
    ) -> WholeMessage:
        """Read one message; OpencodeNotFoundError if it, or its session, does not exist."""
        path = f"/session/{segment(session_id)}/message/{segment(message_id)}"
        call = Call(CallKind.READ, "GET", path, max_bytes=MESSAGES_MAX_BYTES)
        return await self._http.read(call, _MESSAGE, timeout_s=timeout_s)

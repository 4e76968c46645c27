"""What a turn left, section by section: pure functions from its messages to a text, or a list.

Sizes and offsets of texts are Unicode code points, as Python counts them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.engine.effects import ToolCall
    from opencode_mcp.opencode.diffs import ChangedFile
    from opencode_mcp.opencode.whole_messages import WholeMessage, WholePart

#: of a call's title in the log: for many tools it is their input, which follows it
_TITLE_CHARS = 200


class Section(StrEnum):
    """What can be asked of a turn (contract §2)."""

    ANSWER = "answer"
    TOOL_CALLS = "tool-calls"
    STRUCTURED_OUTPUT = "structured-output"
    DIFF = "diff"


@dataclass(frozen=True, slots=True)
class ToolLog:
    """A turn's tool calls as one text, and where in it each call begins."""

    text: str
    calls: tuple[ToolCall, ...]
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """The files that a turn changed; their place in the list is their index."""

    files: tuple[ChangedFile, ...]


#: a text (answer, structured output), the tool calls, or the changed files
Content: TypeAlias = str | ToolLog | Changes


def tool_log(own: Sequence[WholeMessage], calls: Sequence[ToolCall]) -> ToolLog:
    """Write down every tool call of a turn with what it was given and what it gave.

    `own`: the turn's own messages. `calls`: theirs, as the turn's verdict tells them (which were
    cut short).
    """
    parts = [part for message in own for part in message.parts if part.type == "tool"]
    starts: list[int] = []
    texts: list[str] = []
    length = 0
    for number, (call, part) in enumerate(zip(calls, parts, strict=True), start=1):
        starts.append(length)
        texts.append(_written(number, call, part))
        length += len(texts[-1])
    return ToolLog("".join(texts), tuple(calls), tuple(starts))


def _written(number: int, call: ToolCall, part: WholePart) -> str:
    title = f" · {' '.join(call.title.split())[:_TITLE_CHARS]}" if call.title else ""
    lines = [f"#{number} {call.tool} · {call.status}{title}"]
    # the call has the beginning of an error only
    error = part.detail.error
    reason = error if call.reason and error.startswith(call.reason) else call.reason
    if reason:
        lines.append(f"reason: {reason}")
    if part.detail.input:
        lines.append(f"input: {part.detail.input}")
    if part.detail.output:
        lines.append(f"output:\n{part.detail.output}")
    return "\n".join(lines) + "\n\n"


def digested(content: Content) -> str:
    """Return the text that a content's snapshot id is made of: equal only for equal contents."""
    match content:
        case str():
            return content
        case ToolLog():
            return content.text
        case Changes(files):
            return json.dumps([file.model_dump() for file in files], ensure_ascii=False)


def chars_of(content: Content) -> int:
    """Return about how many characters it takes to keep a content."""
    match content:
        case str():
            return len(content)
        case ToolLog():
            return len(content.text) + sum(len(call.title or "") + 100 for call in content.calls)
        case Changes(files):
            return sum(len(file.file) + len(file.patch) + 100 for file in files)

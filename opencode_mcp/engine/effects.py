"""What a turn left besides its answer: tool calls, changed files, tokens and cost."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opencode_mcp.opencode.models import Message, Part
    from opencode_mcp.opencode.tool_state import ToolState

#: how much of a cut call's output is told; with the reason before it a title's size (contract §3)
_OUTPUT_CHARS = 200
#: OpenCode's own tools that change nothing; any other may
_READ_ONLY = frozenset(
    {"read", "glob", "grep", "list", "todoread", "todowrite", "question", "skill", "invalid"}
)
#: tools whose work goes on in processes that an abort may not reach (facts 4.2, 7.2)
_WITH_PROCESSES = frozenset({"bash", "task"})
#: OpenCode's words for a call that it could not even begin (tried on 1.18.33)
_MALFORMED = re.compile(r"called with invalid arguments|tried to call unavailable tool")
#: OpenCode's words for a call that an abort ended (facts 4.2)
_ABORTED_CALL = "Tool execution aborted"
_ABORTED_COMMAND = "User aborted the command"
_SHELL_NOTE = "</shell_metadata>"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool, as its part tells it; `cancelled` is our word, for one that was cut."""

    tool: str
    status: str
    title: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of all steps of a turn, compactions included, sub-agents not."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0


def text_of(message: Message) -> str:
    """Return what a message says: its text parts, without those that OpenCode put in itself."""
    return "\n\n".join(
        part.text
        for part in message.parts
        if part.type == "text" and part.text and not part.synthetic and not part.ignored
    )


def tool_parts(messages: Sequence[Message]) -> Iterator[Part]:
    """Yield the tool calls' parts, in their order."""
    return (part for message in messages for part in message.parts if part.type == "tool")


def is_malformed(part: Part) -> bool:
    """Whether a tool call was no call: an unknown tool, or arguments that do not fit (tried)."""
    if part.tool == "invalid":  # OpenCode's stand-in for a call that it cannot place
        return True
    return bool(part.state and part.state.error and _MALFORMED.search(part.state.error))


def has_effects(messages: Sequence[Message]) -> bool:
    """Whether a tool was really called."""
    return any(not is_malformed(part) for part in tool_parts(messages))


def may_have_changed_something(messages: Sequence[Message]) -> bool:
    """Whether a tool was called that may have left something outside the conversation."""
    return any(
        part.tool not in _READ_ONLY and not is_malformed(part) for part in tool_parts(messages)
    )


def tool_calls(messages: Sequence[Message], *, cut: str | None, over: bool) -> tuple[ToolCall, ...]:
    """List the tool calls. After the end none is shown as running (facts 9.2, contract §2.2).

    `cut`: why the turn was cut short, None if it was not. A call that the cut ended is `cancelled`
    whatever OpenCode calls it: its own word for an aborted command is `completed` (facts 4.2).
    """
    reason = cut or "the turn ended before this call did"
    calls = []
    for part in tool_parts(messages):
        state, name = part.state, part.tool or "?"
        title = state.title if state else None
        if over and _is_cut(state, was_cut=cut is not None):
            calls.append(ToolCall(name, "cancelled", title, _with_output(reason, state)))
        else:
            status = state.status if state else "pending"
            calls.append(ToolCall(name, status, title, state.error if state else None))
    return tuple(calls)


def may_leave_a_process(calls: Sequence[ToolCall]) -> bool:
    """Whether a command was cut: TERM-ignoring and `setsid` children live on (facts 4.2, 9.4)."""
    return any(call.status == "cancelled" and call.tool in _WITH_PROCESSES for call in calls)


def _is_cut(state: ToolState | None, *, was_cut: bool) -> bool:
    if state is None or state.status in {"pending", "running"}:
        return True
    if not was_cut:
        return False
    said = state.output.rstrip()
    return (
        state.metadata.interrupted
        or state.error == _ABORTED_CALL
        or (said.endswith(_SHELL_NOTE) and _ABORTED_COMMAND in said[-_OUTPUT_CHARS:])
    )


def _with_output(reason: str, state: ToolState | None) -> str:
    """Return the reason and the end of the output that a cut call had."""
    if state is None:
        return reason
    output = state.output.split("<shell_metadata>")[0].strip() or state.metadata.output.strip()
    return f"{reason}; its output so far: {output[-_OUTPUT_CHARS:]}" if output else reason


def usage_of(messages: Sequence[Message]) -> Usage:
    """Add up what the assistant's messages used."""
    infos = [message.info for message in messages if message.info.role == "assistant"]
    return Usage(
        input=sum(i.tokens.input for i in infos),
        output=sum(i.tokens.output for i in infos),
        reasoning=sum(i.tokens.reasoning for i in infos),
        cache_read=sum(i.tokens.cache.read for i in infos),
        cache_write=sum(i.tokens.cache.write for i in infos),
        cost=sum(i.cost for i in infos),
    )


def files_changed(messages: Sequence[Message]) -> tuple[str, ...]:
    """List the files that the turn changed, each once; relative where they are in its folder.

    OpenCode's own summary comes late and only where git is (tried); so do its `patch` parts, which
    also know what a command changed. Without git the files that tools name are all there is.
    """
    path = next((m.info.path for m in messages if m.info.path.cwd), None)
    cwd, root = (path.cwd, path.root) if path else ("", "")
    found: dict[str, None] = {}
    for message in messages:
        for name in _named_files(message):
            absolute = posixpath.normpath(posixpath.join(root, name))
            found[_relative(absolute, cwd)] = None
    return tuple(found)


def _named_files(message: Message) -> Iterator[str]:
    summary = message.info.summary
    if message.info.role == "user" and summary is not None and not isinstance(summary, bool):
        yield from (diff.file for diff in summary.diffs if diff.file)
    for part in message.parts:
        if part.type == "patch":
            yield from part.files
        elif part.type == "tool" and part.state and part.state.status == "completed":
            yield from part.state.metadata.files


def _relative(absolute: str, cwd: str) -> str:
    inside = cwd.rstrip("/") + "/"
    return absolute.removeprefix(inside) if cwd else absolute

"""The watchdog: does a turn go round in circles? Judged from its steps alone.

OpenCode asks the model again after every step that called a tool, and after one whose finish it
does not know (`unknown`, tried). A model that answers with nothing, with a web page or with calls
that cannot be made therefore goes on for ever. A provider's back-off is no step: it happens within
one message, and OpenCode's status tells it (facts 8.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opencode_mcp.engine.effects import is_malformed, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.opencode.models import Message, Part

_HTML = ("<!doctype html", "<html")


@dataclass(frozen=True, slots=True)
class ResponseLoop:
    """So many steps in a row without progress. `pattern` is a word, never content.

    `empty` · `html` · `malformed_tool_call` · `mixed` of these · `same_failing_call` ·
    `same_answer`. `window_ms`: from the first one's beginning to the newest one's end.
    """

    count: int
    window_ms: int
    pattern: str


def find_loop(steps: Sequence[Message], limit: int) -> ResponseLoop | None:
    """Return the loop at the end of a turn's steps, if at least `limit` steps are in it.

    `steps` are the assistant's messages without compactions, oldest first; one that is not
    complete, or was cut, does not count. `limit` 0 finds none.
    """
    done = [step for step in steps if step.info.time.completed and step.info.finish]
    if limit < 1 or len(done) < limit:
        return None
    senseless = _row([_senseless(step) is not None for step in done])
    same = _row([_signature(step) == _signature(done[-1]) for step in done])
    if _signature(done[-1]) is None:
        same = 0
    count = max(senseless, same)
    if count < limit:
        return None
    row = done[-count:]
    begun, ended = (
        row[0].info.time.created,
        row[-1].info.time.completed or row[-1].info.time.created,
    )
    window_ms = max(0, round((ended - begun).total_seconds() * 1000))
    return ResponseLoop(count, window_ms, _pattern(row, senseless=senseless >= same))


def _row(marks: list[bool]) -> int:
    """Return how many of the last marks are set, in a row."""
    count = 0
    for mark in reversed(marks):
        if not mark:
            break
        count += 1
    return count


def _pattern(row: Sequence[Message], *, senseless: bool) -> str:
    if senseless:
        kinds = {_senseless(step) for step in row}
        return (kinds.pop() or "mixed") if len(kinds) == 1 else "mixed"
    return "same_failing_call" if _tools(row[-1]) else "same_answer"


def _tools(step: Message) -> list[Part]:
    return [part for part in step.parts if part.type == "tool"]


def _senseless(step: Message) -> str | None:
    """Name what is senseless about a step; None if it may have brought something."""
    tools = _tools(step)
    if tools:
        return "malformed_tool_call" if all(is_malformed(part) for part in tools) else None
    text = text_of(step).strip()
    if not text:
        return "empty"
    return "html" if text[:14].lower().startswith(_HTML) else None


def _signature(step: Message) -> tuple[object, ...] | None:
    """Return what makes a step the same as another; None for one that brought something.

    Calls count only where all of them failed: the same call with a result may be a poll.
    """
    tools = _tools(step)
    if not tools:
        return ("text", text_of(step).strip())
    if any(part.state is None or part.state.status != "error" for part in tools):
        return None
    return tuple((part.tool, part.state.input_digest) for part in tools if part.state)

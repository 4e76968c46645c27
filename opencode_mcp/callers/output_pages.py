"""Pages of what a turn left, as `opencode-output` answers with them.

A page of a text is exactly that text, so that pages put together are the whole: `content` has no
heading, and what there is to say beside it stands in the fields.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from opencode_mcp.callers.moments import iso
from opencode_mcp.callers.outcome_fields import call_entry
from opencode_mcp.callers.paging import begun_between, page_end
from opencode_mcp.callers.sizing import MAX_RESULT_CHARS, short
from opencode_mcp.engine.sections import Changes, ToolLog
from opencode_mcp.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opencode_mcp.callers.arguments_reading import OutputArguments
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import Changed
    from opencode_mcp.engine.outputs import TurnOutput
    from opencode_mcp.engine.sections import Content
    from opencode_mcp.opencode.diffs import ChangedFile

#: of a text, in Unicode code points, where the caller does not say
DEFAULT_TEXT_PAGE = 20_000
#: of the list of changed files
DEFAULT_LIST_PAGE = 100
_NO_PATCH = "(no textual patch: a binary file, or nothing but its mode changed)"


@dataclass(frozen=True, slots=True)
class View:
    """What is paged through: how much there is of it, and what a page of it says."""

    total: int
    default_limit: int
    #: from an offset to another: the page's text
    text: Callable[[int, int], str]
    #: the same: the fields beside it
    fields: Callable[[int, int], Result]
    #: what is said where there is nothing
    nothing: str


def present_output(output: TurnOutput, arguments: OutputArguments) -> Result:
    """Return the page that was asked for, or the part of it that is small enough to be sent."""
    view = view_of(output.reading.content, arguments)
    offset, limit = arguments.offset or 0, arguments.limit or view.default_limit

    def until(end: int) -> Result:
        page = _page(output, view, offset, end)
        page["section"] = arguments.section or "answer"
        return page

    # in its longest spelling, every character beyond ASCII escaped: whoever sends it on may do so
    end = page_end(
        offset, limit, view.total, lambda end: len(json.dumps(until(end))) < MAX_RESULT_CHARS
    )
    return until(end)


def _page(output: TurnOutput, view: View, offset: int, end: int) -> Result:
    session, turn, reading = output.session, output.turn, output.reading
    nothing = f"(nothing at {offset}: it has {view.total})" if view.total else view.nothing
    result: Result = {
        "kind": "output",
        "status": "ok",
        "content": view.text(offset, end) or nothing,
        "sessionId": session.id,
        "threadId": session.id,
        "turnId": turn.message_id,
        "turn": turn.number,
        "offset": offset,
        "total": view.total,
        "hasMore": end < view.total,
        "partial": reading.is_partial,
        "snapshotId": reading.snapshot_id,
        "observedAt": iso(reading.observed_at),
    }
    if end < view.total:
        result["nextOffset"] = end
        result["hint"] = f"Go on with offset {end} and snapshot-id {reading.snapshot_id}."
    return cast("Result", {**result, **view.fields(offset, end)})


def view_of(content: Content, arguments: OutputArguments) -> View:
    """Return how a section is paged through. Raises InvalidArgumentError."""
    if isinstance(content, ToolLog):
        calls = [call_entry(call) for call in content.calls]
        return _text_view(
            content.text,
            "(no tool calls)",
            content.starts,
            lambda which: {"toolCalls": calls[which], "toolCallCount": len(calls)},
        )
    if isinstance(content, Changes):
        if arguments.diff_view != "patch":
            return _stat_view(content)
        return _patch_view(content, arguments.file_index)
    return _text_view(content, "(no text)", (), lambda _which: {})


def _text_view(
    text: str,
    nothing: str,
    starts: Sequence[int],
    listed: Callable[[slice], dict[str, object]],
) -> View:
    """Page through a text; `listed`: the fields for what begins on a page (see `starts`)."""
    return View(
        len(text),
        DEFAULT_TEXT_PAGE,
        lambda offset, end: text[offset:end],
        lambda offset, end: cast("Result", listed(begun_between(starts, offset, end))),
        nothing,
    )


def _stat_view(changes: Changes) -> View:
    files = [_changed(index, file) for index, file in enumerate(changes.files)]
    return View(
        len(files),
        DEFAULT_LIST_PAGE,
        lambda offset, end: "".join(_line(file) for file in files[offset:end]),
        lambda offset, end: cast("Result", {"diff": files[offset:end]}),
        "(no files changed)",
    )


def _patch_view(changes: Changes, index: int | None) -> View:
    files = [_changed(number, file) for number, file in enumerate(changes.files)]
    if index is None:
        starts: list[int] = []
        text = ""
        for file in changes.files:
            starts.append(len(text))
            text += _patch_among_others(file)
        return _text_view(text, "(no files changed)", starts, lambda which: {"diff": files[which]})
    if index >= len(files):
        there = f"its files are 0 to {len(files) - 1}" if files else "it has no files"
        msg = f"file-index is {index}; of this diff {there}"
        raise InvalidArgumentError(msg)
    return _text_view(
        changes.files[index].patch, _NO_PATCH, (), lambda _which: {"diff": [files[index]]}
    )


def _patch_among_others(file: ChangedFile) -> str:
    if not file.patch:
        return f"Index: {file.file}\n{_NO_PATCH}\n"
    return file.patch if file.patch.endswith("\n") else file.patch + "\n"


def _line(file: Changed) -> str:
    return (
        f"{file['index']} {file['status']} +{file['additions']} -{file['deletions']}"
        f" {file['file']}\n"
    )


def _changed(index: int, file: ChangedFile) -> Changed:
    return {
        "index": index,
        "file": short(file.file),
        "status": short(file.status or "changed"),
        "additions": file.additions,
        "deletions": file.deletions,
    }

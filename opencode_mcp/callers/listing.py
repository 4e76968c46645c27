"""A page of the tracked sessions: as many as fit, and the next page goes on without a gap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.callers.moments import iso
from opencode_mcp.callers.presenting import ending_state
from opencode_mcp.callers.sizing import (
    FITTED_CHARS,
    NOTES_CHARS,
    fitting,
    mark_omitted,
    serialized_size,
    short,
    short_line,
    text_size,
)
from opencode_mcp.counting import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import Listed
    from opencode_mcp.engine.overview import Line

_TITLE_CHARS = 80
#: of what stands around the sessions
_FRAME_CHARS = 500


def present_page(  # noqa: PLR0913 - a page, and how it is to be shown
    lines: Sequence[Line],
    total: int,
    *,
    offset: int,
    owners: bool = False,
    is_compact: bool = False,
    version: str | None = None,
) -> Result:
    """Return a page of the sessions that the caller sees; with `owners`, whose they are.

    A page that would be too long ends earlier; `nextOffset` is always right.
    """
    rows = [(_row(line, owners=owners), _listed(line, owners, is_compact)) for line in lines]
    room = FITTED_CHARS - NOTES_CHARS - _FRAME_CHARS
    kept = fitting(rows, room, lambda row: text_size(row[0]) + serialized_size(row[1]) + 2)
    following = offset + len(kept)
    heading = counted(total, "tracked session") + (f", from {offset}" if offset else "")
    text = [heading + ("" if total else ": start one with opencode"), *(row for row, _ in kept)]
    if following < total:
        text.append(f"More with offset {following}.")
    result: Result = {
        "kind": "sessions",
        "status": "ok",
        "content": "\n".join(text),
        "sessions": [listed for _, listed in kept],
        "total": total,
        "offset": offset,
        "hasMore": following < total,
    }
    if version is not None:
        result["opencodeVersion"] = short(version)
    if following < total:
        result["nextOffset"] = following
    if len(kept) < len(rows):
        mark_omitted(result, "sessions")
    return result


def _row(line: Line, *, owners: bool) -> str:
    session = line.session
    about = short_line(session.title or session.directory, _TITLE_CHARS)
    whose = f" · {session.owner}" if owners else ""
    return f"{session.id} · {line.status} · {counted(session.turn_count, 'turn')} · {about}{whose}"


def _listed(line: Line, owners: bool, is_compact: bool) -> Listed:  # noqa: FBT001 - private
    session = line.session
    item: Listed = {
        "sessionId": session.id,
        "threadId": session.id,
        "directory": short(session.directory),
        "status": line.status,
        "pendingApprovalCount": line.pending_count,
    }
    if not is_compact:
        item["turns"] = session.turn_count
        item["createdAt"] = iso(session.created_at)
        item["updatedAt"] = iso(session.updated_at)
    if owners:
        item["owner"] = session.owner
    if session.title:
        item["title"] = short(session.title)
    if session.ending:
        item["ending"] = ending_state(session.ending)
    return item

"""What a turn changed, as OpenCode tells it on the turn's user messages (`opencode.diffs`)."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opencode_mcp.engine.sections import Changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.opencode.whole_messages import WholeMessage, WholePart

#: the worktree's root where there is no git (tried on 1.18.33)
_NO_GIT = "/"


@dataclass(frozen=True, slots=True)
class FoundChanges:
    """What is told of a turn's changes at one moment."""

    changes: Changes
    #: False: without git OpenCode keeps no diff. None: no step tells the folder
    is_kept: bool | None
    #: False: no user message has a summary (yet)
    is_told: bool
    #: a step says that it changed a file which is not among them (yet)
    is_behind: bool


def changes_of(messages: Sequence[WholeMessage]) -> FoundChanges:
    """Return the changes of a turn's own messages.

    A compaction splits a turn's changes over several user messages; a file may then be told twice.
    A step names what it changed at once (in its `patch` part, unless it was cut; and so do some
    tools), the summary follows after the turn. A file that was made and removed again stays in the
    first and is never in the second (tried); nor is one that git ignores.
    """
    told = [message.info.changes for message in messages if message.info.role == "user"]
    files = tuple(file for changes in told for file in changes or ())
    path = next((m.info.path for m in messages if m.info.path.cwd), None)
    root = path.root if path else ""
    named = {
        posixpath.normpath(name)
        for message in messages
        for part in message.parts
        for name in _named_by(part)
        if name.startswith(root + "/")
    }
    known = {posixpath.normpath(posixpath.join(root, file.file)) for file in files}
    return FoundChanges(
        changes=Changes(files),
        is_kept=None if path is None else root != _NO_GIT,
        is_told=any(changes is not None for changes in told),
        is_behind=bool(named - known),
    )


def _named_by(part: WholePart) -> Sequence[str]:
    """Return the files that a part says were changed, as absolute paths."""
    if part.type == "patch":
        return part.files
    if part.state is not None and part.state.status == "completed":
        return part.state.metadata.files
    return ()

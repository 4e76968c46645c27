"""What a turn changed, as OpenCode tells it on the turn's user messages (`opencode.diffs`)."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opencode_mcp.engine.sections import Changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.opencode.whole_messages import WholeMessage

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
    A step's `patch` part names what it changed at once, the summary follows after the turn; a file
    that was made and removed again stays in the first and is never in the second (tried).
    """
    told = [message.info.changes for message in messages if message.info.role == "user"]
    files = tuple(file for changes in told for file in changes or ())
    path = next((m.info.path for m in messages if m.info.path.cwd), None)
    root = path.root if path else ""
    named = {
        posixpath.normpath(name)
        for message in messages
        for part in message.parts
        if part.type == "patch"
        for name in part.files
    }
    known = {posixpath.normpath(posixpath.join(root, file.file)) for file in files}
    return FoundChanges(
        changes=Changes(files),
        is_kept=None if path is None else root != _NO_GIT,
        is_told=any(changes is not None for changes in told),
        is_behind=bool(named - known),
    )

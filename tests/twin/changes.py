"""The files that a turn changed, as OpenCode tells them: only in a git folder (measured)."""

from __future__ import annotations

import difflib
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.twin.shapes import Json


def root_of(directory: str) -> str:
    """Return the worktree's root as messages name it: `/` without git (measured)."""
    return directory if (Path(directory) / ".git").exists() else "/"


class Changes:
    """What the tools of one run wrote."""

    def __init__(self, directory: str) -> None:
        #: for the user message's summary
        self.diffs: list[Json] = []
        #: absolute paths, since the last patch part
        self.of_step: list[str] = []
        self._folder = Path(directory)

    def note(self, path: Path, before: str | None, now: str) -> None:
        """Take down a write; None: the file is new."""
        if not (self._folder / ".git").exists() or not path.is_relative_to(self._folder):
            return
        name = str(path.relative_to(self._folder))
        old = [] if before is None else before.splitlines()
        lines = [*difflib.unified_diff(old, now.splitlines(), name, name, lineterm="")]
        changed = lines[2:]  # the first two name the files
        self.diffs = [diff for diff in self.diffs if diff["file"] != name]
        self.diffs.append(
            {
                "file": name,
                "patch": "\n".join([f"Index: {name}", *lines]),
                "additions": sum(line.startswith("+") for line in changed),
                "deletions": sum(line.startswith("-") for line in changed),
                "status": "added" if before is None else "modified",
            }
        )
        self.of_step.append(str(path))

    def patch(self) -> Json:
        """Make the part that closes a step with changes."""
        files, self.of_step = self.of_step, []
        return {"type": "patch", "hash": secrets.token_hex(20), "files": files}

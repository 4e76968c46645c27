"""The file that was opened as the database, and whether it still is the database.

A file that is deleted or replaced while it is open goes on taking writes, which nobody will ever
read. SQLite does not notice (with a WAL), and to track nothing without a word is the one thing
that this program must not do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.store.door import door, unusable

if TYPE_CHECKING:
    import os
    from pathlib import Path

_REMEDY = "put it back where it was, or restart this server"


class OpenedFile:
    """The database's file as it is now, before it is opened. Raises StoreUnusableError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with door(path):
            self._known = _identity(path.stat())

    def check(self) -> None:
        """Raise StoreUnusableError unless the file is still at its path. Takes microseconds."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            raise unusable(self.path, "it was deleted while in use", _REMEDY) from None
        except OSError as error:
            raise unusable(self.path, f"it cannot be looked at: {error.strerror}") from error
        if _identity(found) != self._known:
            raise unusable(self.path, "it was replaced while in use", _REMEDY)
        if not found.st_size:
            raise unusable(self.path, "it was emptied while in use", _REMEDY)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino

"""The door between sqlite3's errors and ours: inside the store sqlite3's, outside StoreError.

A text is one line: which file, as which user id, what is wrong, what to do. SQLite's own words
name tables and constraints at most, never values, so they may be shown.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opencode_mcp.errors import StoreError, StoreUnusableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: SQLite's extended codes carry the primary one in their low byte.
_PRIMARY = 0xFF

#: Another connection is in the way; the same statement may succeed a moment later.
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})

_ACCESS = "make the file and its folder writable for that user, or set another DATABASE"
_REPLACE = "restore a backup, move the file away, or set another DATABASE"
_REMEDIES = {
    sqlite3.SQLITE_READONLY: _ACCESS,
    sqlite3.SQLITE_PERM: _ACCESS,
    sqlite3.SQLITE_CANTOPEN: _ACCESS,
    sqlite3.SQLITE_NOTADB: _REPLACE,
    sqlite3.SQLITE_CORRUPT: _REPLACE,
    sqlite3.SQLITE_FULL: "free space on its disk",
    # a quota, a file-size limit and a WAL index without room do not count as "full" for SQLite
    sqlite3.SQLITE_IOERR: "check its disk, and that there is space on it",
}


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code, or SQLITE_OK for an error of Python's own module."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return int(code) & _PRIMARY


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether another connection was in the way."""
    return primary_code(error) in _BUSY


def unusable(path: Path, reason: object, remedy: str = _ACCESS) -> StoreUnusableError:
    """Return the error for a database that cannot be used at `path`."""
    return StoreUnusableError(
        f"the tracking database {path} cannot be used as user id {os.geteuid()}: {reason}; {remedy}"
    )


def _translate(path: Path, error: sqlite3.Error) -> StoreError:
    code = primary_code(error)
    if code in _BUSY:
        remedy = "find the process that holds it (fuser names it) and try again"
        return unusable(path, error, remedy)
    if code in _REMEDIES:
        return unusable(path, error, _REMEDIES[code])
    # A broken constraint or bad SQL: a bug of ours. The transaction left nothing.
    return StoreError(f"the tracking database {path} refused a statement: {error}")


@contextmanager
def door(path: Path) -> Iterator[None]:
    """Turn sqlite3's errors, and the system's about files, into StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(path, error) from error
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise unusable(path, f"{error.strerror or error}{where}") from error

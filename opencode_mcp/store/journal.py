"""Which journal a database has: a WAL, or a rollback journal where memory cannot be shared.

A WAL has an index in memory that all processes map (`-shm`). Some file systems cannot do that, say
folders that a virtual machine or a container shares with its host. SQLite finds out too late: it
marks the file as WAL first, and from then on nobody can read it. So it is tried on another file.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from opencode_mcp.log_events import Event, tell
from opencode_mcp.store.door import primary_code

log = logging.getLogger(__name__)

_OWNER_ONLY_FILE = 0o600
_COMPANIONS = ("", "-wal", "-shm", "-journal")
#: what a WAL fails with when its index cannot be opened (CANTOPEN: or anything else), or mapped.
#: Not SHMSIZE, which is a full disk
_NO_INDEX = frozenset(
    {sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMLOCK}
)


def use_best(connection: sqlite3.Connection, path: Path) -> None:
    """Make the database a WAL database if its file system can have one; else say so in the log.

    The set-up lock is held. A database that is a WAL one already, and was read, stays as it is.
    """
    if _set(connection) == "wal":
        return
    if not can_share_memory(path) or _set(connection, "WAL") != "wal":
        tell(log, Event.NO_WAL, database=str(path))


def leave_wal(connection: sqlite3.Connection, path: Path) -> None:
    """Turn a WAL database into one with a rollback journal; nothing of it is lost.

    For a connection in exclusive locking mode, which needs no shared memory.
    """
    _set(connection, "DELETE")
    tell(log, Event.NO_WAL, database=str(path))


def lacks_shared_memory(error: sqlite3.Error, path: Path) -> bool:
    """Tell whether `error` came of a WAL database in a folder where none can be."""
    return _is_of_the_index(error) and not can_share_memory(path)


def can_share_memory(path: Path) -> bool:
    """Try a WAL database beside `path`. Raises OSError and sqlite3.Error, e.g. on a full disk."""
    probe = Path(f"{path}.probe")
    _remove(probe)  # what a kill has left
    try:
        os.close(os.open(probe, os.O_RDWR | os.O_CREAT | os.O_EXCL, _OWNER_ONLY_FILE))
        with closing(sqlite3.connect(f"{probe.as_uri()}?mode=rw", uri=True)) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # nothing in it is worth a wait
            return _set(connection, "WAL") == "wal" and _can_be_read(connection)
    finally:
        _remove(probe)


def _can_be_read(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError as error:
        if _is_of_the_index(error):
            return False
        raise
    return True


def _is_of_the_index(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code in _NO_INDEX or primary_code(error) == sqlite3.SQLITE_CANTOPEN


def _set(connection: sqlite3.Connection, mode: str | None = None) -> str:
    """Ask for a journal mode, if one is named, and return the one there is."""
    asked = "" if mode is None else f" = {mode}"
    return str(connection.execute(f"PRAGMA journal_mode{asked}").fetchone()[0])


def _remove(probe: Path) -> None:
    for suffix in _COMPANIONS:
        Path(f"{probe}{suffix}").unlink(missing_ok=True)

"""Look at a tracking database without changing it: for whoever asks how it is, before it is opened.

Blocking, and for files that this process does not have open: closing them here would drop SQLite's
locks (POSIX).
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from opencode_mcp.store.door import door
from opencode_mcp.store.migrate import APPLICATION_ID, migration_folder, migrations

#: how long another's write is waited for
_BUSY_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is known of the file of a tracking database."""

    #: the number of its last migration; 0: an empty file
    schema: int
    #: the newest schema that this release knows
    known: int
    #: false: it belongs to another program
    is_ours: bool
    #: SQLite's word for its journal: `wal`, `delete`, …
    journal: str
    #: tracked sessions, and how many of them wait for their end to be confirmed; None: not readable
    sessions: int | None
    endings: int | None
    #: why it cannot be written now; None: it can
    write_fault: str | None
    #: what SQLite's own check found; None: nothing
    damage: str | None


def newest_schema() -> int:
    """Return the newest schema that this release knows. Raises MigrationError."""
    return migrations(migration_folder())[-1].number


def inspect(path: Path) -> Inspection | None:
    """Return what is known of the database at `path`; None: there is none.

    Raises StoreUnusableError where it cannot be read.
    """
    real = Path(os.path.realpath(path))
    with door(real):
        if not real.exists():
            return None
        # a file that may not be written is opened all the same, to say what can be said
        mode = "rw" if os.access(real, os.W_OK) and os.access(real.parent, os.W_OK) else "ro"
        uri = f"{real.as_uri()}?mode={mode}"
        with closing(
            sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
        ) as connection:
            return _inspected(connection)


def _inspected(connection: sqlite3.Connection) -> Inspection:
    schema = int(_one(connection, "PRAGMA user_version"))
    if schema:
        is_ours = int(_one(connection, "PRAGMA application_id")) == APPLICATION_ID
    else:
        is_ours = int(_one(connection, "SELECT count(*) FROM sqlite_master")) == 0
    has_tables = is_ours and schema > 0
    checked = _one(connection, "PRAGMA quick_check(1)")
    return Inspection(
        schema=schema,
        known=newest_schema(),
        is_ours=is_ours,
        journal=_one(connection, "PRAGMA journal_mode"),
        sessions=_count(connection, "true") if has_tables else None,
        endings=_count(connection, "phase = 'ending'") if has_tables else None,
        write_fault=_write_fault(connection),
        damage=None if checked == "ok" else checked,
    )


def _one(connection: sqlite3.Connection, sql: str) -> str:
    return str(connection.execute(sql).fetchone()[0])


def _count(connection: sqlite3.Connection, condition: str) -> int | None:
    """Count sessions; None: a schema that does not have what is asked for."""
    try:
        return int(_one(connection, f"SELECT count(*) FROM sessions WHERE {condition}"))  # noqa: S608 - ours
    except sqlite3.Error:
        return None


def _write_fault(connection: sqlite3.Connection) -> str | None:
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        return str(error)
    return None

"""Bring a database up to date, or refuse it.

`PRAGMA user_version` is the number of the last migration that ran; 0 is a fresh file. Blocking;
`prepare.py` calls it under the set-up lock.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opencode_mcp.errors import MigrationError, SchemaTooNewError
from opencode_mcp.store.door import is_busy, primary_code, unusable
from opencode_mcp.store.journal import lacks_shared_memory, leave_wal, use_best

if TYPE_CHECKING:
    from collections.abc import Sequence

#: 'ocmp', set by the first migration: a database of ours.
APPLICATION_ID = 0x6F636D70

#: Switching to WAL answers busy without waiting when another connection writes (case B37), so the
#: whole step is tried again. The busy time-out is SQLite's own wait within one try.
_TRIES = 5
_PAUSE_S = 0.2
_BUSY_TIMEOUT_S = 1.0

#: Codes that blame the script. All others (full, read-only, busy, …) blame the file.
_SCRIPT_FAULTS = frozenset(
    {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH}
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of `migrations/`: it leads from schema `number - 1` to schema `number`."""

    number: int
    path: Path


def migration_folder() -> Path:
    """Return where the migrations lie: in the package (wheel), else beside it (checkout)."""
    package = Path(__file__).resolve().parents[1]
    places = (package / "migrations", package.parent / "migrations")
    for place in places:
        if place.is_dir():
            return place
    msg = f"no migrations found, neither in {places[0]} nor in {places[1]}"
    raise MigrationError(msg)


def migrations(folder: Path) -> list[Migration]:
    """Return the migrations in `folder`, in order; raise MigrationError if one is missing."""
    found = [
        Migration(int(path.name[:4]), path) for path in folder.glob("[0-9][0-9][0-9][0-9]_*.sql")
    ]
    found.sort(key=lambda migration: migration.number)
    numbers = [migration.number for migration in found]
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        msg = f"the migrations in {folder} are not numbered 1, 2, 3, …: {numbers}"
        raise MigrationError(msg)
    return found


def migrate(path: Path, folder: Path | None = None) -> None:
    """Make the database at `path` one of the newest schema, with a WAL where that is possible.

    Raises SchemaTooNewError, MigrationError, StoreUnusableError, sqlite3.Error (for the door).
    A database that is refused is not changed.
    """
    known = migrations(folder or migration_folder())
    for _ in range(_TRIES - 1):
        try:
            return _migrate(path, known)
        except sqlite3.Error as error:
            if not is_busy(error):
                raise
            time.sleep(_PAUSE_S)
    return _migrate(path, known)  # only the last failure counts


def _migrate(path: Path, known: Sequence[Migration]) -> None:
    try:
        _bring_up_to_date(path, known, alone=False)
    except sqlite3.Error as error:
        if not lacks_shared_memory(error, path):
            raise
        _bring_up_to_date(path, known, alone=True)


def _bring_up_to_date(path: Path, known: Sequence[Migration], *, alone: bool) -> None:
    """Do all that is to be done; `alone`: on a WAL database where memory cannot be shared.

    Alone, whoever has the database open is in the way, and it is left without a WAL.
    """
    uri = f"{path.as_uri()}?mode=rw"  # never create: the mode would be the umask's
    with closing(
        sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
    ) as connection:
        if alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        found = _number(connection, "user_version")
        _refuse_foreign(connection, path, found, known[-1].number)
        (leave_wal if alone else use_best)(connection, path)
        # A file that is read-only lets itself be opened, and even be read: ask for the write.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
        for migration in known[found:]:
            _run(connection, path, migration)


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _refuse_foreign(connection: sqlite3.Connection, path: Path, found: int, known: int) -> None:
    """Refuse a newer release's database, and another program's (OpenCode's own, say)."""
    if found > known:
        msg = (
            f"the tracking database {path} has schema {found}, this release knows {known}: "
            "run the newer release that wrote it, or set another DATABASE"
        )
        raise SchemaTooNewError(msg)
    if found == 0:
        ours = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    else:
        ours = _number(connection, "application_id") == APPLICATION_ID
    if not ours:
        raise unusable(path, "it belongs to another program", "set another DATABASE")


def _run(connection: sqlite3.Connection, path: Path, migration: Migration) -> None:
    """Run one migration and note its number, in one transaction.

    BEGIN and COMMIT are part of the script: executescript would commit one begun outside.
    """
    sql = migration.path.read_text(encoding="utf-8")
    try:
        connection.executescript(
            f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA user_version = {migration.number};\nCOMMIT;"
        )
    except sqlite3.Error as error:
        connection.rollback()
        if primary_code(error) not in _SCRIPT_FAULTS:
            raise
        msg = (
            f"migration {migration.path} failed and left nothing in {path}: {error}; "
            "keep the database and report this"
        )
        raise MigrationError(msg) from error

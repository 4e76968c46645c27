"""One open database: reads, and writes that nothing can leave half done.

A write is a task of its own that holds the lock, and callers only wait for it behind a shield:
whoever is cancelled (a tool call, a time-out, a shutdown), the transaction goes on to its COMMIT
or ROLLBACK. Nobody else writes BEGIN.

Two connections, a thread each (aiosqlite). Writes take turns on one. Reads are single statements
on the other, so that they never land in an open transaction. With a WAL they never wait for a
writer. Without one (`journal.py`) they wait while anybody commits, and a COMMIT waits until the
reads that had begun are done: milliseconds, since no read lasts longer than its one statement.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import aiosqlite

from opencode_mcp.errors import StoreUnusableError
from opencode_mcp.store.door import door, is_busy
from opencode_mcp.store.opened_file import OpenedFile
from opencode_mcp.store.prepare import prepare

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from opencode_mcp.clock import Clock

    Values = Sequence[object] | Mapping[str, object]
    Rows = list[sqlite3.Row]

T = TypeVar("T")

#: A write of ours takes milliseconds, so who waits this often and long waits for something broken.
_BUSY_TIMEOUT_MS = 2000
_BUSY_TRIES = 3
_BUSY_PAUSE_S = 0.05  # SQLite may answer busy at once, without its time-out


class Transaction:
    """What a write may do between BEGIN IMMEDIATE and COMMIT. Valid only there."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def run(self, sql: str, values: Values = ()) -> int:
        """Run one changing statement; return how many rows it changed."""
        async with self._connection.execute(sql, values) as cursor:
            return cursor.rowcount

    async def rows(self, sql: str, values: Values = ()) -> Rows:
        """Return all rows of a query."""
        return list(await self._connection.execute_fetchall(sql, values))

    async def row(self, sql: str, values: Values = ()) -> sqlite3.Row | None:
        """Return the first row of a query, or None."""
        return next(iter(await self.rows(sql, values)), None)


class Database:
    """An open database. `open_database` makes it and closes it."""

    def __init__(
        self,
        file: OpenedFile,
        reader: aiosqlite.Connection,
        writer: aiosqlite.Connection,
        clock: Clock,
    ) -> None:
        self._file = file
        self._path = file.path
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._lock = asyncio.Lock()
        self._in_flight: set[asyncio.Task[object]] = set()
        self._closing: asyncio.Task[None] | None = None

    async def rows(self, sql: str, values: Values = ()) -> Rows:
        """Return all rows of one query: a consistent view of what was committed before it."""
        self._check_open()

        async def query() -> Rows:
            return list(await self._reader.execute_fetchall(sql, values))

        with door(self._path):
            found = await self._patiently(query)
        self._file.check()
        return found

    async def row(self, sql: str, values: Values = ()) -> sqlite3.Row | None:
        """Return the first row of one query, or None."""
        return next(iter(await self.rows(sql, values)), None)

    async def write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one transaction; it is committed if `work` returns, else undone.

        Raises StoreUnusableError, also when the file was taken away and nobody will ever read
        what was written. A cancelled caller does not stop it. `work` must be short: it keeps out
        all other writers, of all processes.
        """
        self._check_open()
        task = asyncio.create_task(self._transact(work))
        self._in_flight.add(task)
        task.add_done_callback(self._landed)
        return await asyncio.shield(task)

    def _landed(self, task: asyncio.Task[object]) -> None:
        self._in_flight.discard(task)
        if not task.cancelled():
            task.exception()  # a caller that was cancelled does not ask, and asyncio would complain

    async def close(self) -> None:
        """Wait for the writes in flight, then close. A cancelled caller does not stop it."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            while self._in_flight:
                await asyncio.wait(self._in_flight)
        finally:
            # Together: each must at least begin, or its thread would keep the process alive.
            await asyncio.gather(self._reader.close(), self._writer.close())

    def _check_open(self) -> None:
        if self._closing is not None:
            msg = f"the tracking database {self._path} was closed"
            raise StoreUnusableError(msg)

    async def _transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async with self._lock:
            with door(self._path):
                try:
                    await self._patiently(lambda: self._writer.execute_fetchall("BEGIN IMMEDIATE"))
                    self._file.check()  # before: what is written to a lost file may harm another
                    result = await work(Transaction(self._writer))
                    await self._patiently(lambda: self._writer.execute_fetchall("COMMIT"))
                except BaseException:
                    # Also when this task itself is cancelled (the loop is torn down): the thread
                    # works in order, so this comes after whatever it is at. No-op outside one.
                    await self._writer.rollback()
                    raise
            self._file.check()  # after: only what is in the database's own file is recorded
            return result

    async def _patiently(self, step: Callable[[], Awaitable[T]]) -> T:
        """Do `step`, again while other connections are in the way; the last failure counts."""
        for _ in range(_BUSY_TRIES - 1):
            try:
                return await step()
            except sqlite3.Error as error:
                if not is_busy(error):
                    raise
                await self._clock.sleep(_BUSY_PAUSE_S)
        return await step()


class Part:
    """A part of the Store: the methods around one table."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock


@asynccontextmanager
async def open_database(path: Path, clock: Clock) -> AsyncIterator[Database]:
    """Open the database at `path`, made and brought up to date if need be.

    Raises StoreUnusableError, SchemaTooNewError or MigrationError.
    """
    real = await asyncio.to_thread(prepare, path)
    file = OpenedFile(real)
    reader, writer = _connection(real), _connection(real)
    database = Database(file, reader, writer, clock)
    try:
        with door(real):
            await _set_up(reader, "PRAGMA query_only = ON")
            await _set_up(writer, "PRAGMA foreign_keys = ON")
        yield database
    finally:
        await database.close()


def _connection(path: Path) -> aiosqlite.Connection:
    # mode=rw: a file that vanished meanwhile is an error, not a new one with the umask's mode.
    return aiosqlite.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None)


async def _set_up(connection: aiosqlite.Connection, *pragmas: str) -> None:
    await connection
    connection.row_factory = sqlite3.Row
    for pragma in (
        f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}",
        # After the power fails, what we reported as recorded must be there. Without a WAL a commit
        # is the removal of a file, and FULL would not sync the folder.
        "PRAGMA synchronous = EXTRA",
        *pragmas,
    ):
        await connection.execute_fetchall(pragma)

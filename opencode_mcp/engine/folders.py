"""What a managed OpenCode keeps of folders, and when it lets go of one (case 41).

OpenCode keeps an instance for each folder that was ever asked for, until it is disposed: 34 MB
each (measured on 1.18.33, 40 folders; with a dispose after each its memory levels off). So a folder
that nobody used for a while, or the longest unused of many, is disposed where nothing of ours is
tracked or about to start; the next use loads it again. Never in attach mode: there that hits
everybody's sessions (facts 9.5).

A dispose aborts what runs in its folder. So that it never meets a session that another process of
ours has just begun to start: who starts one holds a lock together with others until the start is
written down, and who disposes holds it alone while it looks and disposes.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from opencode_mcp.log_events import Event, tell
from opencode_mcp.opencode.locks import FileLock
from opencode_mcp.records import InstanceKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from pathlib import Path

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.instances import Connection
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)

#: loading a folder again takes some seconds, so one that is used now and then is kept
UNUSED_S = 600.0
#: of more than so many, the longest unused ones go sooner: 34 MB each
MANY = 16
CROWDED_S = 30.0
#: a dispose takes 10-39 ms (facts 9.5, and measured here), a status about 1
_REQUEST_S = 5.0
_POLL_S = 0.02
#: longer than whoever disposes holds the lock, unless it hangs: then a start goes on without it
_PATIENCE_S = 3 * _REQUEST_S


class Folders:
    """The folders of our managed OpenCodes, as one process sees them."""

    def __init__(
        self,
        *,
        store: Store,
        connections: Callable[[], Iterable[Connection]],
        lock: Path,
        clock: Clock,
    ) -> None:
        """`lock`: a file that all processes which share these OpenCodes lock."""
        self._store = store
        self._connections = connections
        self._lock = lock
        self._clock = clock

    @asynccontextmanager
    async def starting(self, connection: Connection) -> AsyncIterator[None]:
        """Keep folders from being disposed until the start is written down."""
        if connection.instance.kind is not InstanceKind.MANAGED:
            yield
            return
        until = self._clock.monotonic() + _PATIENCE_S
        with FileLock(self._lock) as lock:
            with suppress(OSError):  # where nothing can be locked, nobody disposes either
                while not lock.try_shared() and self._clock.monotonic() < until:
                    await self._clock.sleep(_POLL_S)
            yield

    async def let_go(self) -> None:
        """Dispose what nobody used for long enough. Raises OpencodeError, StoreError."""
        for connection in list(self._connections()):
            if connection.instance.kind is InstanceKind.MANAGED:
                now = self._clock.monotonic()
                for directory in unused(connection.client.used_at, now):
                    await self._let_go_of(connection, directory)

    async def _let_go_of(self, connection: Connection, directory: str) -> None:
        """Dispose one folder, unless somebody may need it: then it is looked at later."""
        client = connection.client
        with FileLock(self._lock) as lock:
            if not _is_ours_alone(lock):
                return
            client.used_at[directory] = self._clock.monotonic()
            if await self._store.uses_folder(directory):
                return
            if await client.statuses(directory, timeout_s=_REQUEST_S):
                return
            await client.dispose(directory, timeout_s=_REQUEST_S)
            connection.warmed.pop(directory, None)
            del client.used_at[directory]
        tell(log, Event.FOLDER_LET_GO, directory=directory)


def unused(used_at: Mapping[str, float], now: float) -> list[str]:
    """Return the folders that were not used for long enough, the longest unused first."""
    oldest_first = sorted(used_at, key=used_at.__getitem__)
    beyond = len(oldest_first) - MANY
    return [
        name
        for place, name in enumerate(oldest_first)
        if now - used_at[name] >= (CROWDED_S if place < beyond else UNUSED_S)
    ]


def _is_ours_alone(lock: FileLock) -> bool:
    try:
        return lock.try_exclusive()
    except OSError:
        return False

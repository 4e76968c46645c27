"""Let other processes of ours tell whether this one is alive: a lock that the kernel frees.

A process id proves nothing (containers have their own), nor does a clock. A file lock does: it is
held for life and freed by the kernel however the process dies.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Self

from opencode_mcp.opencode.locks import FileLock, locking_works

if TYPE_CHECKING:
    from pathlib import Path


class Presence:
    """This process's own name and lock, in a folder beside the database."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = secrets.token_hex(8)
        self._lock = FileLock(self._path(self.name))

    def __enter__(self) -> Self:
        """Take the lock. Raises StoreUnusableError where files cannot be locked."""
        locking_works(self._folder)
        self._lock.try_exclusive()
        return self

    def __exit__(self, *_: object) -> None:
        """Free the lock and remove its file."""
        self._lock.path.unlink(missing_ok=True)
        self._lock.release()

    def is_dead(self, name: str) -> bool:
        """Whether the process of that name is proven dead: its lock could be taken.

        A file that is gone was removed by its own process as it left, or by whoever proved its
        death, so it counts as dead too.
        """
        if name == self.name:
            return False
        with FileLock(self._path(name)) as lock:
            try:
                taken = lock.try_exclusive(create=False)
            except FileNotFoundError:
                return True
            if taken:
                lock.path.unlink(missing_ok=True)
            return taken

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lock"

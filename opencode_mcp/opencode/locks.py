"""flock, the one kind of lock that the kernel frees when its holder dies, however it dies.

A lock belongs to the open file description: two descriptors of one process exclude each other,
and a forked child that keeps the descriptor shares the lock. Every descriptor here is closed on
exec, so no program that we start inherits a lock. Standard library only: the supervisor imports it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from opencode_mcp.errors import StoreUnusableError

if TYPE_CHECKING:
    from types import TracebackType

_OPEN_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class FileLock:
    """A lock on one file, held until `release()` or until this process dies.

    Leaving it as a context manager releases it. Not for two threads at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        """Whether this very object holds the lock now."""
        return self._fd is not None

    def try_exclusive(self, *, create: bool = True) -> bool:
        """Take the lock for us alone; False: somebody else holds it. Never waits.

        Raises FileNotFoundError without `create`, and OSError where files cannot be locked.
        """
        return self._try(fcntl.LOCK_EX, create=create)

    def try_shared(self, *, create: bool = True) -> bool:
        """Take the lock together with others; False: somebody holds it alone. Never waits.

        Raises as `try_exclusive` does.
        """
        return self._try(fcntl.LOCK_SH, create=create)

    def release(self) -> None:
        """Free the lock, if it is held. The file stays."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _try(self, mode: int, *, create: bool) -> bool:
        if self._fd is not None:
            message = f"{self.path} is locked by this object already"
            raise RuntimeError(message)
        while True:
            fd = os.open(self.path, _OPEN_FLAGS | (os.O_CREAT if create else 0), 0o600)
            try:
                got = _flock(fd, mode)
                # between open and flock the file may have been removed, and a lock on a removed
                # file excludes nobody
                current = not got or self._is_still(fd)
            except BaseException:
                os.close(fd)
                raise
            if got and current:
                self._fd = fd
                return True
            os.close(fd)
            if not got:
                return False

    def _is_still(self, fd: int) -> bool:
        try:
            there = self.path.stat(follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(fd))


def lock_descriptor(fd: int) -> None:
    """Lock an open file exclusively, for as long as any copy of `fd` is open. Raises OSError."""
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_held_exclusively(path: Path) -> bool:
    """Tell whether somebody holds `path` exclusively. Raises FileNotFoundError if it is missing.

    Asks by taking a *shared* lock for a moment, so that two askers do not mistake each other for
    the holder.
    """
    with FileLock(path) as probe:
        return not probe.try_shared(create=False)


def locking_works(folder: Path) -> None:
    """Prove that flock excludes in `folder`, which is made (0700) if it is missing.

    Raises StoreUnusableError: some network and FUSE folders refuse locks, others only pretend.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, name = tempfile.mkstemp(prefix=".locking-", dir=folder)
        os.close(fd)
        try:
            excludes = _excludes(Path(name))
        finally:
            Path(name).unlink()
    except OSError as error:
        message = f"{folder}: files cannot be locked there ({error.strerror}). {_REMEDY}"
        raise StoreUnusableError(message) from error
    if not excludes:
        message = f"{folder}: a file lock there does not keep others out. {_REMEDY}"
        raise StoreUnusableError(message)


_REMEDY = "Set OPENCODE_MCP_DATABASE to a path on a local disk."


def _excludes(path: Path) -> bool:
    with FileLock(path) as first, FileLock(path) as second:
        if not first.try_exclusive() or second.try_exclusive() or second.try_shared():
            return False
        first.release()
        return second.try_exclusive()


def _flock(fd: int, mode: int) -> bool:
    try:
        fcntl.flock(fd, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""Make a database ready before anybody opens it: folder, file, schema.

Blocking; run in a thread. Any number of processes may do this at once on one fresh file (case
B37): one lock file beside the database lets them in one by one.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from opencode_mcp.store.door import door, unusable
from opencode_mcp.store.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

#: How long one process waits for the others' set-up; one takes some milliseconds.
SETUP_LOCK_S = 10.0
_SETUP_POLL_S = 0.01

_OWNER_ONLY_FOLDER = 0o700
_OWNER_ONLY_FILE = 0o600


def prepare(path: Path, *, lock_s: float = SETUP_LOCK_S) -> Path:
    """Bring the database at `path` into being and up to date; return its real path.

    Raises StoreUnusableError, SchemaTooNewError or MigrationError.
    """
    # Beside the real file lie its -wal and -shm, so it is that folder which must be writable.
    path = Path(os.path.realpath(path))
    with door(path):
        _make_folder(path.parent)
        _try_folder(path)
        with _setup_lock(path, lock_s):
            _make_file(path)
            migrate(path)
    return path


def _make_folder(folder: Path) -> None:
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(mode=_OWNER_ONLY_FOLDER, exist_ok=True)


def _try_folder(path: Path) -> None:
    """Create a file beside `path` and drop it again: only that proves that a WAL will find room.

    Permission bits prove nothing on a read-only mount (case B39).
    """
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise unusable(path, f"nothing can be written in its folder: {error.strerror}") from error


@contextmanager
def _setup_lock(path: Path, lock_s: float) -> Iterator[None]:
    """Hold the set-up lock of the database at `path`, waiting at most `lock_s` for it."""
    flags = os.O_RDWR | os.O_CREAT
    descriptor = os.open(f"{path}.setup", flags, _OWNER_ONLY_FILE)
    try:
        deadline = time.monotonic() + lock_s
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline:
                raise unusable(
                    path,
                    f"another process has been setting it up for {lock_s:g} s",
                    f"end the process that holds {path}.setup (fuser names it) and try again",
                )
            time.sleep(_SETUP_POLL_S)
        yield
    finally:
        os.close(descriptor)  # frees the lock


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make_file(path: Path) -> None:
    """Create the file with mode 0600, or leave the one that is there alone.

    SQLite would make it with the umask's mode; -wal and -shm take the file's. O_EXCL also
    matters: closing any descriptor of a file that SQLite has open in this process drops SQLite's
    locks on it (POSIX), so an existing file must not be opened here.
    """
    if path.is_dir():
        raise unusable(path, "it is a folder", "set DATABASE to a file")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _OWNER_ONLY_FILE)
    except FileExistsError:
        return
    os.close(descriptor)

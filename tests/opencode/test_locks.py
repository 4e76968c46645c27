"""flock: who keeps whom out, and when it is freed."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.errors import StoreUnusableError
from opencode_mcp.opencode.locks import FileLock, is_held_exclusively, locking_works

if TYPE_CHECKING:
    from pathlib import Path

_HOLDER = """
import sys
from pathlib import Path
from opencode_mcp.opencode.locks import FileLock
lock = FileLock(Path(sys.argv[1]))
print(lock.try_exclusive(), flush=True)
sys.stdin.read()
"""


def test_one_alone_keeps_all_others_out_until_released(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with FileLock(path) as first, FileLock(path) as second:
        assert first.try_exclusive()
        assert not second.try_exclusive()
        assert not second.try_shared()
        assert not second.held
        first.release()
        assert second.try_exclusive()
        assert [first.held, second.held] == [False, True]


def test_many_share_and_keep_out_who_wants_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with FileLock(path) as first, FileLock(path) as second, FileLock(path) as third:
        assert first.try_shared()
        assert second.try_shared()
        first.release()
        assert not third.try_exclusive()
        second.release()
        assert third.try_exclusive()


def test_a_lock_file_is_private(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock") as lock:
        lock.try_shared()
        assert lock.path.stat().st_mode & 0o777 == 0o600


def test_a_missing_file_is_not_made_unless_asked(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    with pytest.raises(FileNotFoundError):
        lock.try_shared(create=False)
    with pytest.raises(FileNotFoundError):
        is_held_exclusively(lock.path)
    assert list(tmp_path.iterdir()) == []


def test_taking_twice_is_a_bug_and_says_so(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock") as lock:
        lock.try_shared()
        with pytest.raises(RuntimeError, match="already"):
            lock.try_exclusive()
        assert lock.held


def test_a_kill_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", _HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"True\n"
            assert is_held_exclusively(path)
            holder.send_signal(signal.SIGKILL)
            holder.wait(10)
        finally:
            holder.kill()
    assert not is_held_exclusively(path)


def test_a_program_that_we_start_does_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.try_exclusive()
    command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, close_fds=False) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()  # the kernel closes what it does not inherit a moment later
            lock.release()
            assert not is_held_exclusively(lock.path)
        finally:
            child.kill()


def test_asking_whether_it_is_held_disturbs_no_other_asker(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with FileLock(path) as asker:
        assert asker.try_shared()  # what another process's question looks like
        assert not is_held_exclusively(path)


def test_locking_works_where_it_does_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "new one"
    locking_works(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_lock_is_named(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    with pytest.raises(StoreUnusableError, match=f"{in_the_way}.*OPENCODE_MCP_DATABASE"):
        locking_works(in_the_way)

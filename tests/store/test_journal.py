"""Where processes cannot share memory there is no WAL: it is said, and all the rest holds."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.clock import Clock
from opencode_mcp.errors import SchemaTooNewError, StoreError, StoreUnusableError
from opencode_mcp.store.prepare import prepare
from opencode_mcp.store.store import Store
from tests.store.children import children
from tests.store.make import INSTANCE, a_session, a_turn, tracked
from tests.support.disk import Disk, Memory

if TYPE_CHECKING:
    from pathlib import Path

NO_MEMORY = pytest.mark.parametrize("memory", [Memory.ABSENT, Memory.FAILS])

#: two bytes of the file's header: how readers and writers must open it
_WAL, _ROLLBACK = b"\x02\x02", b"\x01\x01"


def journal(path: Path) -> bytes:
    return path.read_bytes()[18:20]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return which databases were said to be without a WAL."""
    told = [it for it in caplog.records if it.levelno == logging.WARNING]
    assert all("without a WAL" in it.message for it in told)
    return [it.__dict__["database"] for it in told]


@NO_MEMORY
async def test_without_shared_memory_it_works_without_a_wal_and_says_so(
    path: Path, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    with Disk(memory):
        async with Store.open(path) as one, Store.open(path) as two:
            await tracked(one)
            assert await two.resolve("ses_1") == a_session()
            files = sorted(file.name for file in path.parent.iterdir())
            assert files == [path.name, f"{path.name}.setup"]
            assert warnings(caplog) == [str(path)] * 2
    assert journal(path) == _ROLLBACK


@NO_MEMORY
async def test_another_process_that_starts_does_not_disturb_one_without_a_wal(
    path: Path, memory: Memory
) -> None:
    """SQLite would mark the file as WAL first, and see afterwards that it cannot have one."""
    with Disk(memory):
        async with Store.open(path) as store:
            await tracked(store)
            prepare(path)
            assert journal(path) == _ROLLBACK
            await store.put_instance(INSTANCE)


@NO_MEMORY
async def test_a_wal_database_goes_on_where_there_can_be_none_and_back_again(
    path: Path, tmp_path: Path, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    """As a volume that moves: what only the WAL held comes along."""
    copy = tmp_path / "copy.db"
    async with Store.open(path) as store:
        await tracked(store)
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
    assert journal(copy) == _WAL
    with closing(sqlite3.connect(f"file:{copy}?immutable=1", uri=True)) as file:
        assert file.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
    with Disk(memory):
        async with Store.open(copy) as store:
            assert await store.resolve("ses_1") == a_session()
            await tracked(store, "ses_2")
    assert journal(copy) == _ROLLBACK
    assert warnings(caplog) == [str(copy)]
    async with Store.open(copy) as store:
        assert await store.resolve("ses_2") == a_session("ses_2")
        assert journal(copy) == _WAL
    assert warnings(caplog) == [str(copy)]


@NO_MEMORY
@pytest.mark.parametrize("pragma", ["user_version = 99", "application_id = 7"])
def test_what_is_refused_keeps_its_wal(path: Path, memory: Memory, pragma: str) -> None:
    prepare(path)
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA {pragma}")
    before = path.read_bytes()
    with Disk(memory), pytest.raises(StoreError) as caught:
        prepare(path)
    assert isinstance(caught.value, SchemaTooNewError) == ("99" in pragma)
    assert path.read_bytes() == before


def test_an_index_that_may_not_be_opened_is_no_reason_to_leave_the_wal(path: Path) -> None:
    """Say, one that root left: then the others on this file would be shut out."""
    prepare(path)
    path.with_name(f"{path.name}-shm").symlink_to("nowhere/to be found")
    with pytest.raises(StoreUnusableError, match="make the file and its folder writable"):
        prepare(path)
    assert journal(path) == _WAL


def test_what_a_killed_probe_left_is_in_nobodys_way(path: Path) -> None:
    path.parent.mkdir()
    left = [path.with_name(f"{path.name}.probe{suffix}") for suffix in ("", "-wal", "-shm")]
    for file in left:
        file.write_bytes(b"half a")
    prepare(path)
    assert journal(path) == _WAL
    assert not any(file.exists() for file in left)


async def test_of_two_processes_without_a_wal_one_wins_each_turn_and_readers_see_it_whole(
    path: Path,
) -> None:
    """Reads and commits of three processes wait for each other; none waits too long."""
    last = 120
    with Disk(Memory.FAILS):
        async with Store.open(path) as store:
            await tracked(store)
            async with children(path, 2, "--no-shared-memory") as both:
                for one in both:
                    one.tell(
                        "begin_turns", session_id="ses_1", last=last, starters=2, pause_s=0.005
                    )
                seen: list[int] = []
                while not seen or seen[-1] < last:
                    session = await store.resolve("ses_1")
                    assert session
                    seen.append(session.turn_count)
                    assert session.version == session.turn_count + 1
                    turn = await store.turn("ses_1", session.turn_count)
                    assert (turn is None) == (session.turn_count == 0)
                answers = [await one.answer() for one in both]
            turns = [await store.turn("ses_1", number) for number in range(1, last + 2)]
    won: list[int] = []
    for answer in answers:
        assert isinstance(answer, dict), answer
        assert answer["won"], "it was over before the other began"
        won += answer["won"]
    assert sorted(won) == list(range(1, last + 1))
    assert len(set(seen)) > 2, "nothing was read meanwhile"
    assert turns == [*(a_turn(number=number) for number in range(1, last + 1)), None]
    assert journal(path) == _ROLLBACK


class _Giving(Clock):
    """Ends the transaction that is in the way, at the first pause."""

    def __init__(self) -> None:
        self.in_the_way: list[sqlite3.Connection] = []

    async def sleep(self, seconds: float) -> None:
        del seconds
        self.in_the_way.pop().rollback()


async def test_a_commit_waits_for_a_read_that_takes_longer_than_sqlite_waits(path: Path) -> None:
    """A backup, say. With a WAL nobody would wait for it."""
    clock = _Giving()
    with Disk(Memory.FAILS):
        async with Store.open(path, clock=clock) as store:
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN")
                other.execute("SELECT * FROM sessions").fetchall()
                clock.in_the_way.append(other)
                await store.put_instance(INSTANCE)
            assert not clock.in_the_way
            assert await store.instance("inst") == INSTANCE

"""The file and its folder: ours alone, and refused with a reason when they are not usable."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.errors import SchemaTooNewError, StoreError, StoreUnusableError
from opencode_mcp.store.prepare import prepare
from opencode_mcp.store.store import Store
from tests.store.make import INSTANCE, a_session, tracked

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def no_umask() -> Iterator[None]:
    """Let the system take no permission away, so that ours are seen."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refusal(path: Path) -> StoreError:
    """Return the error of preparing `path`; it names the file and fits on one line."""
    with pytest.raises(StoreError) as caught:
        prepare(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.usefixtures("no_umask")
async def test_file_and_companions_are_0600_and_new_folders_0700(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "tracking.db"
    async with Store.open(path) as store:
        await tracked(store)
        files = sorted(path.parent.iterdir())
        assert [file.name for file in files] == [
            "tracking.db",
            "tracking.db-shm",
            "tracking.db-wal",
            "tracking.db.setup",
        ]
        assert {mode(file) for file in files} == {0o600}
    assert mode(path.parent) == mode(path.parent.parent) == 0o700


async def test_what_was_written_is_there_after_reopening_and_an_own_mode_stays(
    path: Path,
) -> None:
    async with Store.open(path) as store:
        await tracked(store)
    path.chmod(0o640)
    async with Store.open(path) as store:
        assert await store.resolve("ses_1") == a_session()
        assert await store.instance("inst") == INSTANCE
    assert mode(path) == 0o640


async def test_a_link_leads_to_one_database_with_one_wal(tmp_path: Path) -> None:
    link, path = tmp_path / "link.db", tmp_path / "state" / "real.db"
    link.symlink_to(path)  # dangling
    async with Store.open(link) as one, Store.open(path) as two:
        await tracked(one)
        assert await two.resolve("ses_1") == a_session()
    assert mode(path) == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link.db", "state"]


async def test_a_name_with_url_characters_is_just_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a?b#c%20d" / "track?mode=ro.db"
    async with Store.open(path) as store:
        await tracked(store)
    assert path.exists()


async def test_each_connection_is_durable_and_keeps_references(store: Store) -> None:
    database = store._database  # noqa: SLF001 - settings of the connections
    assert (await database.rows("PRAGMA journal_mode"))[0][0] == "wal"
    found = await database.write(lambda write: write.row("PRAGMA synchronous"))
    assert found
    assert found[0] == 3  # EXTRA
    found = await database.write(lambda write: write.row("PRAGMA foreign_keys"))
    assert found
    assert found[0] == 1


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    text = "these are my notes, not a database\n" * 100
    path.write_text(text, encoding="utf-8")
    error = refusal(path)
    assert isinstance(error, StoreUnusableError)
    assert "move the file away" in str(error)
    assert path.read_text(encoding="utf-8") == text


def test_another_programs_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """Ours: OpenCode keeps a SQLite file, too, and a DATABASE may be pointed at it."""
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE session (id)")
    before = path.read_bytes()
    assert "another program" in str(refusal(path))
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 1")
    assert "another program" in str(refusal(path))
    assert len(path.read_bytes()) == len(before)


def test_a_newer_schema_is_refused_with_both_versions_and_left_as_it_is(path: Path) -> None:
    """Case 37."""
    prepare(path)
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    error = refusal(path)
    assert isinstance(error, SchemaTooNewError)
    assert "99" in str(error)
    assert "knows 6" in str(error)
    assert path.read_bytes() == before


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    assert isinstance(refusal(tmp_path), StoreUnusableError)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    for path in (tmp_path / "state" / "tracking.db", tmp_path / "state" / "deeper" / "tracking.db"):
        assert isinstance(refusal(path), StoreUnusableError)


def test_a_set_up_that_never_ends_is_not_waited_for_for_ever(path: Path) -> None:
    prepare(path)
    with Path(f"{path}.setup").open("r+", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreUnusableError, match="setting it up"):
            prepare(path, lock_s=0.05)
    prepare(path)

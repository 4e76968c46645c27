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

from opencode_mcp.errors import MigrationError, SchemaTooNewError, StoreError, StoreUnusableError
from opencode_mcp.store.migrate import migrate, migration_folder, migrations
from opencode_mcp.store.prepare import prepare
from opencode_mcp.store.store import Store
from tests.store.make import INSTANCE, a_session, tracked

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = {
    "aliases": "alias session_id",
    "instances": "id kind url settings_key data_id dead",
    "keys": "name value",
    "leases": "session_id holder fence renewals",
    "requests": "owner request_id digest call newest_call holder created_at expires_at"
    " session_id turn",
    "sessions": "id owner instance_id directory phase version created_at updated_at title model"
    " agent variant base_instructions developer_instructions turn_count end_action end_since"
    " end_attempt end_last_error end_delete_sent sandbox approval_policy end_next_at",
    "starts": "token owner instance_id directory created_at",
    "tombstones": "session_id owner action ended_at answer_json",
    "turns": "session_id number message_id boundary submission created_at deadline_at stop_reason"
    " holder finished_at output_schema",
}
INDEXES = [
    "aliases_by_session",
    "instances_by_url",
    "requests_by_expiry",
    "sessions_by_instance",
    "sessions_by_owner",
    "sessions_by_update",
    "sessions_ending",
    "sessions_quarantined",
    "starts_by_instance",
    "starts_by_owner",
    "tombstones_by_end",
    "turns_open",
]


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


def test_the_schema_is_the_one_this_release_expects(path: Path) -> None:
    prepare(path)
    with closing(sqlite3.connect(path)) as file:
        tables = {
            name: " ".join(row[1] for row in file.execute(f"PRAGMA table_info({name})"))
            for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        indexes = [
            name
            for (name,) in file.execute(
                "SELECT name FROM sqlite_master WHERE type = 'index' AND sql NOT NULL ORDER BY 1"
            )
        ]
        owner = next(
            row for row in file.execute("PRAGMA table_info(sessions)") if row[1] == "owner"
        )
        assert file.execute("PRAGMA user_version").fetchone() == (6,)
    assert tables == SCHEMA
    assert indexes == INDEXES
    assert owner[3] == 1  # NOT NULL


def test_a_database_of_the_first_schema_arrives_with_its_turns(path: Path, tmp_path: Path) -> None:
    """Ours: rows of before keep what they say, and read as turns that nobody saw to be over."""
    old = tmp_path / "old"
    old.mkdir()
    first = migrations(migration_folder())[0].path
    (old / first.name).write_bytes(first.read_bytes())
    path.parent.mkdir()
    path.touch()
    migrate(path, old)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("INSERT INTO instances (id, kind) VALUES ('i', 'managed')")
        file.execute(
            "INSERT INTO sessions (id, owner, instance_id, directory, phase, version, created_at,"
            " updated_at, turn_count) VALUES ('ses_1', 'local', 'i', '/', 'active', 1, 'a', 'b', 1)"
        )
        file.execute(
            "INSERT INTO turns VALUES ('ses_1', 1, 'msg_1', NULL, 'recorded', 'a', 'b', 'end')"
        )
    prepare(path)
    with closing(sqlite3.connect(path)) as file:
        turns = file.execute("SELECT * FROM turns").fetchall()
        rules = file.execute("SELECT sandbox, approval_policy FROM sessions").fetchall()
    assert turns == [("ses_1", 1, "msg_1", None, "recorded", "a", "b", "end", None, None, None)]
    assert rules == [("danger-full-access", "never")]


def test_a_second_set_up_changes_nothing(path: Path) -> None:
    prepare(path)
    before = path.read_bytes()
    prepare(path)
    assert path.read_bytes() == before


def schema_of(path: Path) -> tuple[object, ...]:
    with closing(sqlite3.connect(path)) as file:
        return (
            file.execute("PRAGMA user_version").fetchone()[0],
            file.execute("PRAGMA application_id").fetchone()[0],
            file.execute("SELECT name FROM sqlite_master ORDER BY 1").fetchall(),
        )


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    path = tmp_path / "tracking.db"
    path.touch()
    return path


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    folder.mkdir()
    first = "PRAGMA application_id = 0x6f636d70;\nCREATE TABLE one (a);\n"
    (folder / "0001_one.sql").write_text(first, encoding="utf-8")
    return folder


def test_a_migration_that_fails_leaves_nothing_and_is_named(empty: Path, scripts: Path) -> None:
    """Trap B1: its first statements are undone, user_version and application_id with them."""
    second = "CREATE TABLE two (a);\nINSERT INTO one VALUES (1);\nINSERT INTO nowhere VALUES (1);\n"
    file = scripts / "0002_two.sql"
    file.write_text(second, encoding="utf-8")
    with pytest.raises(MigrationError, match=r"0002_two\.sql"):
        migrate(empty, scripts)
    assert schema_of(empty) == (1, 0x6F636D70, [("one",)])
    file.write_text("CREATE TABLE two (a);", encoding="utf-8")
    migrate(empty, scripts)
    assert schema_of(empty) == (2, 0x6F636D70, [("one",), ("two",)])


def test_a_first_migration_that_fails_leaves_the_file_fresh(empty: Path, scripts: Path) -> None:
    script = scripts / "0001_one.sql"
    good = script.read_text(encoding="utf-8")
    script.write_text(f"{good}\nnonsense;\n", encoding="utf-8")
    with pytest.raises(MigrationError):
        migrate(empty, scripts)
    assert schema_of(empty) == (0, 0, [])
    script.write_text(good, encoding="utf-8")
    migrate(empty, scripts)
    assert schema_of(empty) == (1, 0x6F636D70, [("one",)])


def test_a_missing_migration_is_noticed_before_anything_runs(empty: Path, scripts: Path) -> None:
    (scripts / "0003_three.sql").write_text("CREATE TABLE three (a);", encoding="utf-8")
    with pytest.raises(MigrationError, match="not numbered"):
        migrate(empty, scripts)
    assert schema_of(empty) == (0, 0, [])


def test_the_migrations_of_a_checkout_are_found() -> None:
    """Trap B10; the wheel's are tried first and do not exist here."""
    folder = migration_folder()
    assert folder == Path(__file__).parents[2] / "migrations"
    assert [migration.path.name for migration in migrations(folder)] == [
        "0001_sessions.sql",
        "0002_turns_that_end.sql",
        "0003_leases_that_run_out.sql",
        "0004_quarantined.sql",
        "0005_output_schema.sql",
        "0006_requests.sql",
    ]

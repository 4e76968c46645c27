"""The schema, and the migrations to it: whole or not at all, and nothing of before is lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from opencode_mcp.errors import MigrationError
from opencode_mcp.store.migrate import migrate, migration_folder, migrations
from opencode_mcp.store.prepare import prepare

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

"""`migrate`: which schema a database has, and bringing it to ours."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.store.inspecting import inspect, newest_schema
from opencode_mcp.store.migrate import migrate, migration_folder, migrations
from tests.cli.command import Command

if TYPE_CHECKING:
    from pathlib import Path

NEWEST = newest_schema()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "t.db"


@pytest.fixture
def command(tmp_path: Path, path: Path) -> Command:
    return Command({"HOME": str(tmp_path), "OPENCODE_MCP_DATABASE": str(path), "PATH": "/bin"})


@pytest.fixture
def old(tmp_path: Path, path: Path) -> Path:
    """Make a database of the first schema."""
    folder = tmp_path / "old-release"
    folder.mkdir()
    shutil.copy(migrations(migration_folder())[0].path, folder)
    path.parent.mkdir()
    path.touch()
    migrate(path, folder)
    return path


def schema(path: Path) -> int:
    with closing(sqlite3.connect(path)) as file:
        return int(file.execute("PRAGMA user_version").fetchone()[0])


def test_an_old_database_is_told_and_left_alone_by_a_check(command: Command, old: Path) -> None:
    said = command.run_now("migrate", "--check")
    assert said.code == 1
    assert f"{old} has schema 1, this release uses {NEWEST}" in said.out
    assert "make a backup" in said.out
    assert schema(old) == 1


def test_an_old_database_is_brought_up_to_date(command: Command, old: Path) -> None:
    said = command.run_now("migrate")
    assert (said.code, said.out) == (0, f"{old}: brought from schema 1 to schema {NEWEST}\n")
    assert "restore your backup" in said.err
    assert schema(old) == NEWEST
    again = command.run_now("migrate", "--check")
    assert (again.code, again.out) == (0, f"{old} is up to date: schema {NEWEST}\n")


def test_programs_get_a_document(command: Command, old: Path) -> None:
    check = command.run_now("migrate", "--check", "--json")
    assert (check.code, check.json) == (
        1,
        {
            "database": str(old),
            "existed": True,
            "from": 1,
            "to": NEWEST,
            "changed": False,
            "upToDate": False,
        },
    )
    done = command.run_now("migrate", "--json")
    assert (done.code, done.json["changed"], done.json["upToDate"]) == (0, True, True)


def test_a_database_that_is_not_there_is_made(command: Command, path: Path) -> None:
    check = command.run_now("migrate", "--check")
    assert (check.code, "is not made yet" in check.out) == (1, True)
    assert not path.parent.exists()
    said = command.run_now("migrate")
    assert (said.code, said.out) == (0, f"{path}: made with schema {NEWEST}\n")
    assert schema(path) == NEWEST


@pytest.mark.parametrize("check", [(), ("--check",)], ids=["migrate", "check"])
def test_the_database_of_a_newer_release_is_refused_unchanged(
    command: Command, old: Path, check: tuple[str, ...]
) -> None:
    with closing(sqlite3.connect(old)) as file:
        file.execute("PRAGMA user_version = 99")
    said = command.run_now("migrate", *check)
    assert (said.code, said.out) == (1, "")
    assert f"has schema 99, this release knows {NEWEST}" in said.err
    assert schema(old) == 99


def test_another_programs_database_is_refused(command: Command, path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE theirs (x)")
    said = command.run_now("migrate", "--check")
    assert (said.code, "belongs to another program" in said.err) == (1, True)


def test_to_look_leaves_nothing_beside_the_database(old: Path) -> None:
    before = sorted(entry.name for entry in old.parent.iterdir())
    found = inspect(old)
    assert found is not None
    assert (found.schema, found.sessions, found.write_fault, found.damage) == (1, 0, None, None)
    assert sorted(entry.name for entry in old.parent.iterdir()) == before

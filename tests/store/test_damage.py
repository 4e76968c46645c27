"""A damaged database is refused in one line, and stays as it is for whoever can mend it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.errors import StoreUnusableError
from opencode_mcp.store.store import Store
from tests.store.make import tracked
from tests.support.bridges import bare_env
from tests.support.process_bridge import COMMAND

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PAGE = 4096
_WITHIN_S = 60


def overwrite(path: Path, start: int, count: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\x5a" * count)


def head(path: Path) -> None:
    overwrite(path, 0, 100)


def first_page(path: Path) -> None:
    overwrite(path, 100, _PAGE - 100)


def all_but_the_first_page(path: Path) -> None:
    overwrite(path, _PAGE, path.stat().st_size - _PAGE)


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


DAMAGES = pytest.mark.parametrize(
    "damage", [head, first_page, all_but_the_first_page, cut_short], ids=lambda it: it.__name__
)


async def filled(path: Path) -> None:
    """Make a database of many pages."""
    async with Store.open(path) as store:
        for number in range(50):
            await tracked(store, f"ses_{number}")
    with closing(sqlite3.connect(path)) as file:  # what a log still holds would mend the damage
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert not path.with_name(f"{path.name}-wal").exists()


@DAMAGES
async def test_a_damaged_database_is_refused_and_left_as_it_is(
    path: Path, damage: Callable[[Path], None]
) -> None:
    """Case 38: no setting starts afresh, so nothing of it is moved or replaced."""
    await filled(path)
    damage(path)
    before = path.read_bytes()
    with pytest.raises(StoreUnusableError) as refused:
        async with Store.open(path) as store:
            await tracked(store, "ses_new")
    said = str(refused.value)
    assert str(path) in said
    assert "restore a backup, move the file away, or set another DATABASE" in said
    assert "\n" not in said
    assert path.read_bytes() == before
    assert {file.name for file in path.parent.iterdir()} == {path.name, f"{path.name}.setup"}


def serve(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a server on this database, with a client that leaves at once."""
    env = bare_env(folder / "home") | {
        "OPENCODE_MCP_SERVER_URL": "http://127.0.0.1:9",
        "OPENCODE_MCP_DATABASE": str(path),
    }
    return subprocess.run(
        [COMMAND],
        env=env,
        cwd=folder,
        input="",
        capture_output=True,
        text=True,
        check=False,
        timeout=_WITHIN_S,
    )


async def test_a_server_does_not_start_on_a_damaged_database(path: Path, tmp_path: Path) -> None:
    """Case 38: one line and an exit code; there is no running without tracking."""
    await filled(path)
    head(path)
    before = path.read_bytes()
    done = await asyncio.to_thread(serve, path, tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len([line for line in done.stderr.splitlines() if str(path) in line]) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_bytes() == before


async def test_damage_that_shows_later_stops_the_write_that_meets_it(path: Path) -> None:
    """Case 38: what can be read still is; what cannot be written down is not taken for done."""
    await filled(path)
    async with Store.open(path) as store:
        before = await store.resolve("ses_1")
    with closing(sqlite3.connect(path)) as file:
        (root,) = file.execute("SELECT rootpage FROM sqlite_master WHERE name = 'instances'")
    overwrite(path, (root[0] - 1) * _PAGE, _PAGE)
    async with Store.open(path) as store:
        assert await store.resolve("ses_1") == before
        with pytest.raises(StoreUnusableError, match="malformed"):
            await tracked(store, "ses_new")
        assert await store.resolve("ses_new") is None

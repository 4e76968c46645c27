"""Reading the tracking database beside the product."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

Dump: TypeAlias = dict[str, list[tuple[object, ...]]]


def dump(database: Path) -> Dump:
    """Return every row of every table, in a stable order."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        ).fetchall()
        return {
            name: sorted(connection.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr)  # noqa: S608 - a name that SQLite itself told
            for (name,) in tables
        }

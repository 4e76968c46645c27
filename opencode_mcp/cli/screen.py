"""What commands show: tables and lines for people, one JSON document for programs.

What was asked for goes to standard output, all else (errors, progress, questions) to standard
error. On a terminal tables fit its width and cells that are too long are cut, but never an id; in a
pipe nothing is cut, wrapped or coloured.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import timedelta

    from rich.console import Console
    from rich.table import Table

EXIT_CODES = (
    "Exit codes: 0 done; 1 failed, a problem was found, or not confirmed; 2 wrong settings or"
    " usage; 3 no such session."
)
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_FOUND = 3

#: a column that may be cut or wrapped keeps so many characters
_NARROWEST = 10
_COLOURS = {
    "ok": "green",
    "warning": "yellow",
    "problem": "red",
    "skipped": "dim",
    "running": "green",
    "waiting_for_approval": "yellow",
    "ending": "yellow",
    "quarantined": "red",
    "unknown": "yellow",
    "ended": "dim",
    "forgotten": "dim",
}


def leave(message: str, code: int) -> NoReturn:
    """Say why on standard error, and exit."""
    click.echo(f"opencode-mcp: {message}", err=True)
    sys.exit(code)


def note(message: str) -> None:
    """Tell something beside the result."""
    click.echo(message, err=True)


def print_json(document: object) -> None:
    """Print the one document of `--json`."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, folds: Sequence[int] = ()
) -> None:
    """Print rows under headings.

    On a terminal the columns `folds` are wrapped where they do not fit; without them the last
    column is cut. All others are whole: where even they do not fit, lines are longer.
    """
    from rich.table import Table  # noqa: PLC0415 - rich costs a tenth of a second

    if not sys.stdout.isatty():
        _print_plain([list(headings), *map(list, rows)])
        return
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    yielding = folds or (len(headings) - 1,)
    whole = sum(width + 2 for place, width in enumerate(widths) if place not in yielding)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for place, heading in enumerate(headings):
        if place in folds:
            table.add_column(heading, overflow="fold")
        elif place in yielding:
            left = max(_console().width - whole, _NARROWEST)
            table.add_column(heading, no_wrap=True, overflow="ellipsis", max_width=left)
        else:
            table.add_column(heading, no_wrap=True, min_width=widths[place])
    _fill(table, rows)
    _print_trimmed(table, whole + _NARROWEST * len(yielding))


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Print names with their values, one fact a line; on a terminal long values are folded."""
    from rich.table import Table  # noqa: PLC0415

    if not sys.stdout.isatty():
        _print_plain([list(fact) for fact in facts])
        return
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    _fill(table, facts)
    _print_trimmed(table)


def print_findings(findings: Sequence[tuple[str, str, str, str]]) -> None:
    """Print checks: how bad, what was checked, what was found, and on a line of its own the cure.

    On a terminal texts are wrapped in their column.
    """
    from rich.table import Table  # noqa: PLC0415

    rows: list[tuple[str, str, str]] = []
    for level, check, text, remedy in findings:
        rows.append((level, check, text))
        rows.extend([("", "", f"→ {remedy}")] if remedy else [])
    if not sys.stdout.isatty():
        _print_plain([list(row) for row in rows])
        return
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    _fill(table, rows)
    _print_trimmed(table)


def age(since: timedelta) -> str:
    """Return a duration in its largest unit: "5 s", "3 min", "2 h", "10 d"."""
    seconds = max(0, int(since.total_seconds()))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


@contextmanager
def progress(text: str) -> Iterator[Callable[[str], None]]:
    """Show on standard error that something takes its time; call the yielded function for news.

    On a terminal one line that moves; elsewhere a line for each piece of news.
    """
    if not sys.stderr.isatty():
        note(text)
        yield note
        return
    from rich.console import Console  # noqa: PLC0415

    with Console(stderr=True).status(_plain(text)) as status:
        yield lambda news: status.update(_plain(news))


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415

    return Console(highlight=False, emoji=False)


def _fill(table: Table, rows: Sequence[Sequence[str]]) -> None:
    from rich.text import Text  # noqa: PLC0415

    for row in rows:
        # words of ours are in the first two columns
        styles = [_COLOURS.get(cell, "") for cell in row[:2]]
        cells = zip_longest(map(_plain, row), styles, fillvalue="")
        table.add_row(*(Text(cell, style=style) for cell, style in cells))


def _print_trimmed(table: Table, needed: int = 0) -> None:
    """Print a table without the blanks that fill its last column up.

    On a terminal that is narrower than `needed` columns its lines are longer than that.
    """
    console = _console()
    console.width = max(console.width, needed)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip(), color=True)


def _print_plain(rows: Sequence[Sequence[str]]) -> None:
    cells = [[_plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


def _plain(text: str) -> str:
    """Return text without what would move a terminal's cursor: titles come from elsewhere."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)

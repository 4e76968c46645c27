"""`python -m opencode_mcp`, and the `opencode-mcp` command."""

from __future__ import annotations

import os
import sys
from typing import TextIO, cast

from opencode_mcp.cli.commands import main as command


def main() -> None:
    """Run the command line."""
    open_closed_streams()
    command()


def open_closed_streams() -> None:
    """Connect stdin, stdout and stderr to nothing where whoever started us closed them.

    Or their numbers would go to the next files that are opened: the event loop's, the database's.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this
    if sys.stdin is None:
        sys.stdin = _stream(0, "r")
    if sys.stdout is None:
        sys.stdout = _stream(1, "w")
    if sys.stderr is None:
        sys.stderr = _stream(2, "w")


def _stream(number: int, mode: str) -> TextIO:
    return cast(TextIO, open(number, mode, encoding="utf-8", closefd=False))


if __name__ == "__main__":
    main()

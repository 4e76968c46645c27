"""Which rows of the facts (sections 3 to 7 and 9) there are, and which no scenario plays.

The list is kept by hand beside the facts; `test_rows.py` holds it against the tests' names.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: section -> its last row
SECTIONS: Mapping[int, int] = MappingProxyType({3: 9, 4: 7, 5: 9, 6: 7, 7: 6, 9: 5})

#: row -> why no scenario plays it on both
EXCEPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "9.4": (
            "a SIGTERM does the same damage as the kill of 9.1, where the broken stream and the"
            " shell command that lives on are played too; a second restart is not worth its price"
        ),
    }
)

#: parts of rows that are played, but not on both: what, and why
PARTS: Mapping[str, str] = MappingProxyType(
    {
        "3.1": "the heartbeat: it comes after ten seconds; tests/twin/test_twin.py has the twin's",
        "4.1": "times: they are OpenCode's own, and the twin is meant to be quick",
        "4.2": "a `setsid` process: it would be left behind on the machine that tests",
        "4.7": "twenty trials: one race near the end is played",
        "6.3": "eight minutes of waiting",
        "6.4": "that it never runs on: under load one was seen to, so it is aborted after it",
        "7.2": "the background route: it answered false, and nobody calls it",
    }
)


def rows() -> set[str]:
    """Return every row."""
    return {f"{section}.{row}" for section, last in SECTIONS.items() for row in range(1, last + 1)}

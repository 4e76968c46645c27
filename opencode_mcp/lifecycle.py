"""The life of a tracked session: every phase and every allowed move, and nothing else.

Two rules. Whatever moves a session asks `check_move` first, and only the store writes the result.
And this file knows what we *intend*, never what OpenCode *is doing*: busy and idle are read from
OpenCode each time, and are not phases.

    ACTIVE       turns may start
    QUARANTINED  the outcome of something we sent is unknown: no new turn until evidence settles it
    ENDING       an end was accepted: no new turn ever again, the end procedure works on it
    ENDED        confirmed. The row is gone; a tombstone remembers how it ended
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Phase(StrEnum):
    """Where a tracked session stands between its start and its end."""

    ACTIVE = "active"
    QUARANTINED = "quarantined"
    ENDING = "ending"
    ENDED = "ended"


MOVES: Mapping[Phase, frozenset[Phase]] = MappingProxyType(
    {
        Phase.ACTIVE: frozenset({Phase.QUARANTINED, Phase.ENDING}),
        Phase.QUARANTINED: frozenset({Phase.ACTIVE, Phase.ENDING}),
        # ENDING again: an end is resumed after a crash, or a delete replaces a pending archive.
        Phase.ENDING: frozenset({Phase.ENDING, Phase.ENDED}),
        Phase.ENDED: frozenset(),
    }
)


class IllegalMoveError(RuntimeError):
    """A move the table does not allow: a bug of ours, never caught, never shown to a caller."""


def check_move(old: Phase, new: Phase) -> Phase:
    """Return `new` if a session may go there from `old`; raise IllegalMoveError otherwise."""
    if new not in MOVES[old]:
        msg = f"a session cannot go from {old} to {new}"
        raise IllegalMoveError(msg)
    return new

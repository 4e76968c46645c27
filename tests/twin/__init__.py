"""The twin: a small OpenCode for tests, as rude as the real one and ruder when told so."""

from tests.twin.faults import (
    Body,
    Drip,
    DropStreams,
    Hang,
    Planned,
    Refuse,
    Reset,
    Restart,
    Seen,
    Silence,
    Status,
    Truncate,
)
from tests.twin.runs import Pace
from tests.twin.twin import Twin

__all__ = [
    "Body",
    "Drip",
    "DropStreams",
    "Hang",
    "Pace",
    "Planned",
    "Refuse",
    "Reset",
    "Restart",
    "Seen",
    "Silence",
    "Status",
    "Truncate",
    "Twin",
]

"""Fixtures: as for turns, and the machine's clock."""

from __future__ import annotations

from tests.ends.conftest import set_clock
from tests.turns.conftest import bridge, bridges, nothing_left, project, twin

__all__ = ["bridge", "bridges", "nothing_left", "project", "set_clock", "twin"]

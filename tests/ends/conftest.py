"""Fixtures: as for turns, in the loop of each test."""

from __future__ import annotations

from tests.turns.conftest import bridge, bridges, nothing_left, project, twin

__all__ = ["bridge", "bridges", "nothing_left", "project", "twin"]

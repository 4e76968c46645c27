"""Fixtures: a twin, and our server over HTTP attached to it."""

from __future__ import annotations

from tests.turns.conftest import bridges, nothing_left, project, twin

__all__ = ["bridges", "nothing_left", "project", "twin"]

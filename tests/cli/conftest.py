"""Fixtures: a twin, servers of ours on it, and the commands that a person types beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.command import Command
from tests.turns.conftest import bridge, bridges, nothing_left, project, twin

if TYPE_CHECKING:
    from tests.support.bridges import Bridges

__all__ = ["bridge", "bridges", "nothing_left", "project", "twin"]


@pytest.fixture
def command(bridges: Bridges) -> Command:
    """Give a way to type commands on the database that the test's servers use."""
    return Command(bridges.attach_env(CLEANUP_TIMEOUT_SECONDS="20"))

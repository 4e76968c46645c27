"""Fixtures: as for turns, in the loop of each test; and time that passes as a test wants it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.clock import Clock
from opencode_mcp.engine import budget, finisher
from tests.turns.conftest import bridge, bridges, nothing_left, project, twin

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["bridge", "bridges", "nothing_left", "project", "twin"]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what goes on in the background go on soon."""
    monkeypatch.setattr(finisher, "ROUND_S", 0.05)
    monkeypatch.setattr(budget, "_FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(budget, "_MAX_PAUSE_S", 0.2)


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Give a way to set the machine's clock."""
    return SetClock(monkeypatch)


class SetClock:
    """Sets the machine's clock by hours; monotonic clocks know nothing of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._now = Clock.now

    def by(self, hours: int) -> None:
        """Set it so many hours ahead of the true time; negative: back."""
        real = self._now

        def now(clock: Clock) -> datetime:
            return real(clock) + timedelta(hours=hours)

        self._monkeypatch.setattr(Clock, "now", now)

"""How long something is remembered by a process that runs for months."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from opencode_mcp.app import purging
from opencode_mcp.clock import Clock
from tests.repeating.repeats import ask, row_of
from tests.support.polling import eventually, steadily
from tests.turns.conftest import bridges, nothing_left, project, twin

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    import pytest

    from tests.support.bridges import Bridges

__all__ = ["bridges", "nothing_left", "project", "twin"]


async def test_it_is_forgotten_after_its_days_without_a_restart(
    bridges: Bridges, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "PURGE_EVERY_S", 0.05)
    bridge = await bridges.attached(TOMBSTONE_DAYS="7")
    session_id = (await bridge.start("SAY:x", project)).session_id
    await bridge.end(session_id)
    assert "ended at" in (await bridge.status(session_id)).text
    real = Clock.now

    def later(clock: Clock) -> datetime:
        return real(clock) + timedelta(days=8)

    monkeypatch.setattr(Clock, "now", later)

    async def forgotten() -> bool:
        return "ended at" not in (await bridge.status(session_id)).text

    await eventually(forgotten, what="nobody remembers the end")


async def test_a_request_id_that_has_expired_leaves_the_database_without_a_restart(
    bridges: Bridges, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "PURGE_EVERY_S", 0.05)
    bridge = await bridges.attached()
    await ask(bridge, "SAY:x", project)
    real = Clock.now

    def set_clock(hours: int) -> None:
        monkeypatch.setattr(Clock, "now", lambda clock: real(clock) + timedelta(hours=hours))

    async def is_there() -> bool:
        return row_of(bridges) is not None

    async def is_gone() -> bool:
        return row_of(bridges) is None

    set_clock(23)
    await steadily(is_there, for_s=0.5, what="it is remembered")
    set_clock(25)
    await eventually(is_gone, what="it is forgotten")

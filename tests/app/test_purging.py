"""How long it is remembered how a session ended, by a process that runs for months."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from opencode_mcp.app import purging
from opencode_mcp.clock import Clock
from tests.support.polling import eventually
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

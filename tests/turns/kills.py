"""A process of ours that is killed in the middle of its turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.victim import Errand, Victim
from tests.turns.reading import streaming

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridges import Bridges
    from tests.twin import Twin

ENDLESS = "SLOW:100000,50"


async def killed_with_a_turn(
    bridges: Bridges, twin: Twin, project: Path, *, timeout_s: float = 600
) -> str:
    """Let a process begin a turn and be killed; the turn runs on. Return the session's id."""
    victim = Victim(
        Errand(
            env=bridges.attach_env(),
            folder=project,
            job="start",
            prompts=(ENDLESS,),
            timeout_s=timeout_s,
        )
    )
    session_id = await victim.answer()
    await streaming(twin)
    await victim.kill()
    return session_id

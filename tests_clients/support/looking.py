"""What a test sees from outside, of a client that is in the middle of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.polling import eventually, steadily

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.witness import Witness

#: a client that starts on a loaded machine
_STARTED_S = 120.0
_STOPPED_S = 45.0


async def first_session(witness: Witness, folder: Path) -> str:
    """Wait for the folder's only session to stream; return its id."""

    async def check() -> str | None:
        found = await witness.sessions(folder)
        return str(found[0]["id"]) if found else None

    session_id = await eventually(check, within_s=_STARTED_S, what="a session appears")
    assert session_id is not None
    await witness.streaming(session_id)
    return session_id


async def quiet(witness: Witness, session_id: str) -> None:
    """Wait until the model is no longer asked for a session, and watch that it stays so."""

    async def check() -> bool:
        return not witness.streams(session_id)

    await eventually(check, within_s=_STOPPED_S, what="the turn was stopped")
    await steadily(check, for_s=1, what="the turn stays stopped")

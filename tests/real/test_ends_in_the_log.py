"""What OpenCode itself says of an end: nothing writes to a session that is deleted already."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tests.real.support.scripts import bash
from tests.support.polling import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.opencode_server import OpencodeServer
    from tests.real.support.processes import Marker
    from tests.real.support.witness import Witness
    from tests.support.bridge import Bridge

#: its database refused a row whose session is gone (FOREIGN KEY)
_REFUSED = "Failed query: insert"


def complaints(opencode: OpencodeServer, session_id: str) -> list[str]:
    """Return the lines of OpenCode's log about rows of this session that it could not write."""
    log = opencode.sandbox.home / ".local" / "share" / "opencode" / "log" / "opencode.log"
    lines = log.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if session_id in line and _REFUSED in line]


async def test_a_session_is_not_deleted_under_its_running_tool(
    bridge: Bridge, opencode: OpencodeServer, witness: Witness, project: Path, marker: Marker
) -> None:
    """Case 28: abort, wait, then delete. A bare delete shows what OpenCode would say."""
    session_id = await bridge.begin(bash(marker.command), project)
    await eventually(marker.alive, what="the command runs")
    ended = await bridge.end(session_id)
    assert (ended.status, ended.structured["abortedRunningTurn"]) == ("ended", True)
    await witness.ended(session_id, project, marker=marker)

    async def is_told() -> bool:
        return await _is_bare_delete_told(opencode, witness, project)

    await eventually(is_told, within_s=75, what="OpenCode complains of a bare delete")
    assert complaints(opencode, session_id) == []


async def _is_bare_delete_told(opencode: OpencodeServer, witness: Witness, project: Path) -> bool:
    """Delete a session under its tool; on a busy machine the tool may be over just before."""
    bare = await witness.create(project)
    await witness.prompt(bare, {"type": "text", "text": bash("sleep 2")})

    async def is_busy() -> bool:
        return "running" in str(await witness.messages(bare))

    async def is_told() -> bool:
        return bool(complaints(opencode, bare))

    await eventually(is_busy, what="another command runs")
    await witness.delete(bare)
    with suppress(AssertionError):
        return await eventually(is_told, within_s=15, what="it is in the log")
    return False

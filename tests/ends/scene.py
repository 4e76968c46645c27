"""A session in the middle of its turn whose process was killed, and others beside it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opencode_mcp.opencode.client import OpencodeClient, Prompt
from opencode_mcp.records import EndAction
from tests.real.support.sandbox import write_project
from tests.real.support.scripts import bash, subagent
from tests.support.bridges import Bridges
from tests.support.polling import eventually
from tests.support.victim import Errand, Victim
from tests.worker import ASK

if TYPE_CHECKING:
    from contextlib import AsyncExitStack
    from pathlib import Path

    from tests.twin import Twin

#: its sub-agent waits for a permission
_WAITING = subagent(bash("echo hi"))
_FOREIGN_MESSAGE = "msg_ffffffffffffffffffffforeign"


@dataclass
class Scene:
    """A tracked session that waits in its sub-agent, an idle tracked one, one that is not ours."""

    twin: Twin
    database: Path
    #: ends the session, and nothing else
    errand: Errand
    session_id: str
    bystander: str
    foreigner: str
    #: how many requests the twin had seen when all was set
    since: int

    def carry_on(self) -> Errand:
        """Return the errand of a process that nobody calls."""
        return replace(self.errand, job="carry on", kill_at=0)

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """Read the tracking database."""
        with closing(sqlite3.connect(self.database)) as file:
            return file.execute(sql).fetchall()

    def check_ended(self, action: str) -> None:
        """Check that the session ended once, as it was to, and that nothing of it is left."""
        world = self.twin.world
        tree = [self.session_id, *(child["id"] for child in world.children(self.session_id))]
        if action == "delete":
            assert self.session_id not in world.sessions
            assert set(world.sessions) == {self.bystander, self.foreigner}
        else:
            assert len(tree) == 2
            assert all("archived" in world.sessions[one]["time"] for one in tree)
        assert set(self.twin.runs.running) <= {self.foreigner}
        assert not self.twin.asks.of("permission", self.errand.folder.as_posix())
        mine = f"WHERE session_id = '{self.session_id}'"
        assert self.rows(f"SELECT action FROM tombstones {mine}") == [(action,)]  # noqa: S608 - ours
        assert self.rows("SELECT id FROM sessions") == [(self.bystander,)]
        assert self.rows("SELECT session_id FROM leases") == []

    def check_others_untouched(self) -> None:
        """Check that nothing was sent about a session that was not to end."""
        touched = [
            line
            for line in self.twin.lines(self.since)
            if not line.startswith("GET") and (self.bystander in line or self.foreigner in line)
        ]
        assert touched == []
        assert "archived" not in self.twin.world.sessions[self.bystander]["time"]


async def waits(twin: Twin, project: Path) -> None:
    """Wait until a session of this folder waits for a permission."""

    async def asked() -> bool:
        return bool(twin.asks.of("permission", str(project)))

    await eventually(asked, what="a permission is waited for")


async def begin_foreign(twin: Twin, project: Path) -> str:
    """Let somebody else begin a turn that goes on for ever; return its session's id."""
    async with OpencodeClient(
        twin.url, username=twin.username, password=twin.password, request_timeout_s=5
    ) as client:
        foreign = await client.create_session(str(project), title="not ours", metadata={})
        await client.prompt_async(foreign.id, Prompt(_FOREIGN_MESSAGE, "HANG"))
    return foreign.id


async def set_scene(
    stack: AsyncExitStack, twin: Twin, folder: Path, action: EndAction = EndAction.DELETE
) -> Scene:
    """Bring it about, in a folder of its own."""
    project = write_project(folder / "asking", ASK).resolve()
    bridges = Bridges(stack, folder, twin, folder)
    start = Errand(
        env=bridges.attach_env(), folder=project, job="start", prompts=("SAY:x", _WAITING)
    )
    foreigner = await begin_foreign(twin, project)
    victim = Victim(start)
    bystander, session_id = await asyncio.gather(victim.answer(), victim.answer())
    await waits(twin, project)
    await victim.kill()
    end = replace(start, job="end", session_ids=(session_id,), action=action)
    return Scene(
        twin=twin,
        database=bridges.database,
        errand=end,
        session_id=session_id,
        bystander=bystander,
        foreigner=foreigner,
        since=len(twin.requests),
    )

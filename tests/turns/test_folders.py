"""What a managed OpenCode keeps in memory of folders is let go of, and nobody is hit by it.

Case 41: each folder that was ever used costs an OpenCode 34 MB until it is disposed.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from opencode_mcp.clock import Clock
from opencode_mcp.engine.folders import CROWDED_S, MANY, UNUSED_S, Folders, unused
from opencode_mcp.engine.instances import Connection
from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.opencode.events import EventHub
from opencode_mcp.opencode.locks import FileLock
from opencode_mcp.opencode_errors import OpencodeError
from opencode_mcp.records import InstanceKind
from opencode_mcp.store.store import Store
from tests.store.make import INSTANCE, ROOMY, a_session, a_start
from tests.support.polling import eventually
from tests.twin import Body, Hang, Status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.bridges import Bridges
    from tests.twin import Twin

DISPOSE = "POST /instance/dispose"


class Later(Clock):
    """A clock that can be set ahead."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


@dataclass
class Scene:
    """The folders of one connection to the twin, and the clock that both go by."""

    store: Store
    connection: Connection
    lock: Path
    clock: Later

    @property
    def folders(self) -> Folders:
        """Give them as this process sees them; all that is kept is the connection's."""
        return self.beside()

    def beside(self) -> Folders:
        """Give the folders as another process sees them."""
        return Folders(
            store=self.store,
            connections=lambda: [self.connection],
            lock=self.lock,
            clock=self.clock,
        )

    async def use(self, folder: Path) -> None:
        """Ask OpenCode about a folder, and let the time pass after which it counts as unused."""
        await self.connection.client.statuses(str(folder))
        self.clock.ahead_s += UNUSED_S


@pytest_asyncio.fixture
async def scene(twin: Twin, tmp_path: Path) -> AsyncIterator[Scene]:
    """Give an OpenCode that the folders take for a managed one."""
    clock = Later()
    async with (
        Store.open(tmp_path / "tracking.db") as store,
        OpencodeClient(
            twin.url,
            username=twin.username,
            password=twin.password,
            request_timeout_s=5,
            clock=clock,
        ) as client,
        EventHub(client) as events,
    ):
        await store.put_instance(INSTANCE)
        yield Scene(store, Connection(INSTANCE, client, events), tmp_path / "folders.lock", clock)


def disposed(twin: Twin) -> list[str]:
    """Return the folders that were disposed, in order."""
    return [seen.query["directory"] for seen in twin.requests if seen.line == DISPOSE]


async def test_each_folder_that_nobody_uses_any_more_is_disposed_once(
    scene: Scene, twin: Twin, tmp_path: Path
) -> None:
    names = [tmp_path / str(number) for number in range(20)]
    for folder in names:
        folder.mkdir()
        await scene.connection.client.statuses(str(folder))
    await scene.folders.let_go()
    assert disposed(twin) == [], "they were used a moment ago"
    scene.clock.ahead_s += UNUSED_S
    for _ in range(2):
        await scene.folders.let_go()
    assert disposed(twin) == [str(folder) for folder in names]
    assert scene.connection.client.used_at == {}
    await scene.use(names[0])
    await scene.folders.let_go()
    assert disposed(twin)[-1] == str(names[0]), "it was used again"


def test_of_many_folders_the_longest_unused_go_sooner() -> None:
    """However fast they are used one after the other, only so many stay."""
    used_at = {str(number): float(number) for number in range(MANY + 4)}
    assert unused(used_at, CROWDED_S + 1) == ["0", "1"], "the others were used a moment ago"
    assert unused(used_at, UNUSED_S - 1) == ["0", "1", "2", "3"], "the others are not too many"
    assert unused(used_at, UNUSED_S + 5) == ["0", "1", "2", "3", "4", "5"]
    assert unused({}, UNUSED_S) == []


async def test_nothing_is_disposed_in_somebody_elses_opencode(
    scene: Scene, twin: Twin, project: Path
) -> None:
    """A dispose hits everybody's sessions (facts 9.5)."""
    attached = replace(INSTANCE, kind=InstanceKind.ATTACH, url=twin.url)
    scene.connection = replace(scene.connection, instance=attached)
    await scene.use(project)
    await scene.folders.let_go()
    assert disposed(twin) == []


async def test_a_folder_with_a_session_or_a_start_is_kept(
    scene: Scene, twin: Twin, project: Path
) -> None:
    start = replace(a_start("t"), directory=str(project))
    await scene.store.record_start(start, ROOMY)
    await scene.use(project)
    await scene.folders.let_go()
    assert disposed(twin) == [], "a session is about to start there"
    await scene.store.track("t", replace(a_session(), directory=str(project)), None)
    scene.clock.ahead_s += UNUSED_S
    await scene.folders.let_go()
    assert disposed(twin) == [], "it is tracked"


async def test_a_folder_in_which_something_runs_is_kept(
    scene: Scene, twin: Twin, project: Path
) -> None:
    """A session that is not tracked here, too: a dispose would abort it."""
    busy = json.dumps({"ses_of_somebody": {"type": "busy"}}).encode()
    shown = twin.fail(Body(busy), path=r"^/session/status$", times=None)
    await scene.use(project)
    await scene.folders.let_go()
    assert disposed(twin) == []
    shown.release()
    scene.clock.ahead_s += UNUSED_S
    await scene.folders.let_go()
    assert disposed(twin) == [str(project)]


async def test_while_somebody_starts_a_session_no_folder_is_disposed(
    scene: Scene, twin: Twin, project: Path
) -> None:
    await scene.use(project)
    async with scene.beside().starting(scene.connection):
        await scene.folders.let_go()
        assert disposed(twin) == []
    await scene.folders.let_go()
    assert disposed(twin) == [str(project)]


async def test_a_start_waits_for_a_dispose_that_is_under_way(
    scene: Scene, twin: Twin, project: Path
) -> None:
    await scene.use(project)
    held = twin.fail(Hang(), method="POST", path="^/instance/dispose$")
    disposing = asyncio.create_task(scene.folders.let_go())
    await held.reached.wait()
    begun = asyncio.Event()

    async def start() -> None:
        async with scene.beside().starting(scene.connection):
            begun.set()

    starting = asyncio.create_task(start())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(begun.wait()), 0.3)
    held.release()
    await asyncio.gather(disposing, starting)
    assert begun.is_set()


async def test_who_holds_the_lock_for_ever_stops_no_start(scene: Scene) -> None:
    with FileLock(scene.lock) as hanging:
        assert hanging.try_exclusive()

        async def start() -> None:
            async with scene.folders.starting(scene.connection):
                pass

        starting = asyncio.create_task(start())

        async def is_over() -> bool:
            scene.clock.ahead_s += 1
            return starting.done()

        await eventually(is_over, what="the start goes on without the lock")
        await starting


async def test_a_dispose_that_fails_is_tried_again_later(
    scene: Scene, twin: Twin, project: Path
) -> None:
    await scene.use(project)
    failing = twin.fail(Status(500), path="^/instance/dispose$", times=None)
    with pytest.raises(OpencodeError):
        await scene.folders.let_go()
    failing.release()
    count = len(disposed(twin))
    await scene.folders.let_go()
    assert len(disposed(twin)) == count, "not at once"
    scene.clock.ahead_s += UNUSED_S
    await scene.folders.let_go()
    assert len(disposed(twin)) == count + 1


async def test_a_start_keeps_folders_until_it_is_written_down(
    bridges: Bridges, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From before the folder is loaded, so that what was read there is not thrown away again."""
    steps: list[str] = []

    @asynccontextmanager
    async def starting(folders: Folders, connection: Connection) -> AsyncIterator[None]:
        del folders, connection
        assert "GET /config/providers" not in twin.lines()
        yield
        with closing(sqlite3.connect(bridges.database)) as file:
            assert file.execute("SELECT directory FROM starts").fetchall() == [(str(project),)]
        assert "POST /session" not in twin.lines()
        steps.append("written down")

    monkeypatch.setattr(Folders, "starting", starting)
    bridge = await bridges.attached()
    assert (await bridge.start("SAY:x", project)).status == "completed"
    assert steps == ["written down"]

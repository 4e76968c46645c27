"""Two processes of ours on one database want the same ends at the same time."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.records import EndAction
from tests.support.polling import eventually
from tests.support.victim import Errand, Victim
from tests.twin import Hang

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridges import Bridges
    from tests.twin import Twin

_SESSIONS = 200


async def started(
    bridges: Bridges, twin: Twin, project: Path, prompts: tuple[str, ...]
) -> tuple[Errand, list[str]]:
    """Let a process start sessions and die; return what ends them, and their ids."""
    errand = Errand(env=bridges.attach_env(), folder=project, job="start", prompts=prompts)
    starter = Victim(errand)
    ids = [await starter.answer() for _ in prompts]

    async def running() -> bool:
        return len(twin.runs.running) == prompts.count("HANG")

    await eventually(running, what="the turns run")
    await starter.kill()
    return replace(errand, job="end", session_ids=tuple(ids)), ids


def tombstones(bridges: Bridges) -> set[str]:
    with closing(sqlite3.connect(bridges.database)) as file:
        assert file.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
        return {row[0] for row in file.execute("SELECT session_id FROM tombstones")}


@pytest.mark.parametrize("killed_at", [0, 300], ids=["both live", "one is killed midway"])
async def test_two_that_end_the_same_sessions_at_once_end_each_of_them_once(
    bridges: Bridges, twin: Twin, project: Path, killed_at: int
) -> None:
    prompts = ("HANG", "SAY:x") * (_SESSIONS // 2)
    errand, ids = await started(bridges, twin, project, prompts)
    since = len(twin.requests)
    one = Victim(replace(errand, kill_at=killed_at, starting_shot=project / "go"))
    later = replace(errand, starting_shot=project / "go, too")
    two = Victim(replace(later, session_ids=errand.session_ids[::-1]))
    await asyncio.gather(one.ready(), two.ready())
    (project / "go").touch()
    if killed_at:  # else the other one may have done it all before
        await one.stepped(killed_at // 2)
    (project / "go, too").touch()
    first, second = await asyncio.gather(one.finished(), two.finished())
    assert first.was_killed is bool(killed_at)
    assert second.exit_code == 0
    told = Counter(second.answers) + Counter(first.answers)
    # who comes after an end is told so
    assert set(told) <= {"ended", "SessionNotFoundError"}
    assert told["ended"] >= _SESSIONS
    assert len(second.answers) == _SESSIONS
    assert not twin.world.sessions
    assert not twin.runs.running
    assert tombstones(bridges) == set(ids)
    deletes = Counter(line for line in twin.lines(since) if line.startswith("DELETE"))
    if not killed_at:  # of one that was killed, a delete may be repeated
        assert set(deletes.values()) == {1}
    assert len(deletes) == _SESSIONS


async def test_a_delete_by_one_replaces_the_archive_that_another_is_at(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    errand, ids = await started(bridges, twin, project, ("HANG", "SAY:x") * 10)
    archiving = Victim(replace(errand, action=EndAction.ARCHIVE))
    deleting = Victim(replace(errand, action=EndAction.DELETE))
    first, second = await asyncio.gather(archiving.finished(), deleting.finished())
    told = Counter(second.answers)
    assert set(told) <= {"ended", "SessionNotFoundError"}  # the archive may have been complete
    assert not twin.runs.running
    left = {i for i, session in twin.world.sessions.items() if "archived" in session["time"]}
    assert left == set(twin.world.sessions)
    assert tombstones(bridges) == set(ids)
    assert set(first.answers) <= {"ended", "EndConflictError", "SessionNotFoundError"}


async def test_a_frozen_process_loses_its_lease_and_does_no_harm_when_it_wakes(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """The residual risk: what was checked before the freeze is sent after it, one request."""
    errand, (session_id,) = await started(bridges, twin, project, ("HANG",))
    short = replace(errand, lease_s=1.0)
    held = twin.fail(Hang(), method="GET", path=r"/children$")
    frozen = Victim(short)
    await held.reached.wait()
    frozen.signal(signal.SIGSTOP)
    held.release()
    heir = await Victim(short).finished()
    assert heir.answers == ("ended",)
    assert session_id not in twin.world.sessions
    since = len(twin.requests)
    frozen.signal(signal.SIGCONT)
    woken = await frozen.finished()
    assert woken.answers == ("ended",)  # the heir's answer
    changes = [line for line in twin.lines(since) if not line.startswith("GET")]
    assert len(changes) <= 1
    assert tombstones(bridges) == {session_id}

"""A disk that fills in the middle of any write: nothing half written, and on it goes afterwards."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.errors import StoreUnusableError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.records import EndAction, StopReason
from opencode_mcp.store.prepare import prepare
from opencode_mcp.store.rebinding import Place
from opencode_mcp.store.store import Store
from tests.store.children import child
from tests.store.make import (
    INSTANCE,
    LIMIT_S,
    ROOMY,
    START,
    SteppingClock,
    a_claim,
    a_session,
    a_start,
    a_tombstone,
    a_turn,
    tracked,
)
from tests.support.disk import Disk, Memory

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from opencode_mcp.records import Lease, Session


class Scene:
    """A store with something of each kind in it."""

    def __init__(self, store: Store, idle: Session, lease: Lease) -> None:
        self.store = store
        self.idle = idle
        self.lease = lease

    @classmethod
    async def set(cls, store: Store) -> Scene:
        for name in ("ses_idle", "ses_ending", "ses_ended"):
            await tracked(store, name)
        await store.attach_instance("http://127.0.0.1:2")
        await store.put_instance(replace(INSTANCE, id="other"))
        await store.record_start(a_start(), ROOMY)
        await store.claim_request(a_claim())
        idle = await store.resolve("ses_idle")
        assert idle
        idle = await store.begin_turn(idle, a_turn("ses_idle"), capacity=ROOMY)
        for name in ("ses_ending", "ses_ended"):
            await store.begin_end(name, None, EndAction.DELETE)
            lease = await store.take_lease(name, "me", None)
            assert lease
            if name == "ses_ended":
                await store.finish_end(a_tombstone(name), lease.fence)
        lease = await store.take_lease("ses_ending", "me", None)
        assert lease
        return cls(store, idle, lease)


#: long after the last use of any session here
LATE = START + timedelta(days=1)
#: of each write: what it does to the database that `Scene.set` has made
WRITES: dict[str, Callable[[Scene], Awaitable[object]]] = {
    "put_instance": lambda it: it.store.put_instance(replace(INSTANCE, id="new")),
    "attach_instance": lambda it: it.store.attach_instance("http://127.0.0.1:1"),
    "shared_key": lambda it: it.store.shared_key("a key"),
    "record_start": lambda it: it.store.record_start(a_start("new"), ROOMY),
    "drop_start": lambda it: it.store.drop_start("start"),
    "track": lambda it: it.store.track("start", a_session("ses_new"), a_turn("ses_new")),
    "begin_turn": lambda it: it.store.begin_turn(it.idle, a_turn("ses_idle", 2), capacity=ROOMY),
    "refuse_turn": lambda it: it.store.refuse_turn(a_turn("ses_idle")),
    "hold_turn": lambda it: it.store.hold_turn(a_turn("ses_idle"), "me"),
    "finish_turn": lambda it: it.store.finish_turn(a_turn("ses_idle")),
    "set_stop_reason": lambda it: it.store.set_stop_reason(a_turn("ses_idle"), StopReason.CANCEL),
    "move": lambda it: it.store.move(it.idle, Phase.QUARANTINED),
    "rehome": lambda it: it.store.rehome(it.idle, "other"),
    "add_alias": lambda it: it.store.add_alias("another name", "ses_idle"),
    "begin_end": lambda it: it.store.begin_end("ses_idle", None, EndAction.DELETE),
    "begin_idle_end": lambda it: it.store.begin_idle_end("ses_idle", LATE, EndAction.DELETE),
    "note_failure": lambda it: it.store.note_failure("ses_ending", it.lease.fence, "why"),
    "note_next_try": lambda it: it.store.note_next_try("ses_ending", START, "why"),
    "note_delete_sent": lambda it: it.store.note_delete_sent("ses_ending", it.lease.fence),
    "finish_end": lambda it: it.store.finish_end(a_tombstone("ses_ending"), it.lease.fence),
    "check_writable": lambda it: it.store.check_writable(),
    "purge_tombstones": lambda it: it.store.purge_tombstones(SteppingClock().now()),
    "take_lease": lambda it: it.store.take_lease("ses_idle", "me", None),
    "renew_lease": lambda it: it.store.renew_lease(it.lease),
    "give_up": lambda it: it.store.give_up(a_tombstone("ses_ending"), it.lease.fence),
    "rebind": lambda it: it.store.rebind(INSTANCE.id, Place(url="http://h"), frozenset({"me"})),
    "claim_request": lambda it: it.store.claim_request(replace(a_claim(), request_id="new")),
    "release_request": lambda it: it.store.release_request(a_claim()),
    "purge_requests": lambda it: it.store.purge_requests(LATE),
    "release_lease": lambda it: it.store.release_lease(it.lease),
}


def content(path: Path) -> list[object]:
    """Return all that a process which comes now would find."""
    with closing(sqlite3.connect(path)) as file:
        tables = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return [row for (name,) in tables for row in file.execute(f"SELECT * FROM {name}")]  # noqa: S608


async def refusal(work: Awaitable[object]) -> str | None:
    """Return why the database could not be used; None: it could."""
    try:
        await work
    except StoreUnusableError as error:
        return str(error)
    return None


def test_every_kind_of_write_is_tried_here() -> None:
    """A new one belongs into `WRITES`."""
    methods = inspect.getmembers(Store, inspect.isfunction)
    source = {name: inspect.getsource(it) for name, it in methods}
    writing = {
        name
        for name, text in source.items()
        if "_database.write(" in text or "self._change(" in text
    }
    # the last only waits for its turn among the writes, and reads
    assert writing - {"_change", "request_after_writes"} == set(WRITES)


@pytest.mark.parametrize("memory", [Memory.WORKS, Memory.FAILS])
@pytest.mark.parametrize("write", WRITES)
async def test_a_disk_that_fills_at_any_point_of_a_write_leaves_nothing_of_it(
    path: Path, write: str, memory: Memory
) -> None:
    with Disk(memory) as disk:
        async with asyncio.timeout(LIMIT_S), Store.open(path, clock=SteppingClock()) as store:
            scene = await Scene.set(store)
            before = content(path)
            for room in itertools.count():
                disk.room = room
                refused = await refusal(WRITES[write](scene))
                disk.room = None
                if refused is None:
                    break
                assert "free space" in refused
                assert content(path) == before, f"after {room} writes"
            assert room > 0
            assert content(path) != before
            await store.put_instance(INSTANCE)


@pytest.mark.parametrize("memory", [Memory.WORKS, Memory.FAILS])
async def test_a_disk_that_fills_in_a_set_up_leaves_each_migration_whole_or_not_at_all(
    tmp_path: Path, memory: Memory
) -> None:
    found: dict[int, set[str | None]] = {}
    with Disk(memory) as disk:
        for room in itertools.count(0, 4):
            path = tmp_path / f"{room}.db"
            disk.room = room
            refused = await refusal(asyncio.to_thread(prepare, path))
            disk.room = None
            if refused is None:
                break
            assert "free space" in refused
            with closing(sqlite3.connect(path)) as file:
                (version,) = file.execute("PRAGMA user_version").fetchone()
                (tables,) = file.execute("SELECT group_concat(name) FROM sqlite_master").fetchone()
            found.setdefault(version, set()).add(tables)
            prepare(path)
    states = {version: len(tables) for version, tables in found.items()}
    assert states == {0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1}
    assert found[0] == {None}
    assert not list(tmp_path.glob("*.probe*"))


async def test_a_limit_of_the_system_is_an_error_and_its_end_the_end_of_it(path: Path) -> None:
    """No stand-in here: the kernel refuses to let the file grow (EFBIG; so does a quota)."""
    async with Store.open(path) as store:
        await tracked(store)
        async with child(path) as limited:
            answer = await limited.ask("write_within_a_limit", session_id="ses_1", size=200_000)
        assert isinstance(answer, dict)
        assert answer["error"] == "StoreUnusableError"
        assert "check its disk" in answer["text"]
        assert answer["before"] is None
        assert await store.resolve("x" * 200_000) == await store.resolve("ses_1")

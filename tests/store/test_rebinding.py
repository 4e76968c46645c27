"""Moving sessions to another instance: all or none, and not under somebody's hands."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.errors import LeaseLostError, StaleSessionError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.records import EndAction
from opencode_mcp.store.rebinding import Place
from tests.store.make import INSTANCE, ROOMY, a_start, a_tombstone, a_turn, tracked

if TYPE_CHECKING:
    from opencode_mcp.store.store import Store

NEW = Place(url="http://new")
NOBODY: frozenset[str] = frozenset()


async def test_sessions_and_starts_move_and_the_rest_stays(store: Store) -> None:
    old = await tracked(store)
    await store.record_start(a_start(), ROOMY)
    other = await store.attach_instance("http://other")
    await store.track("none", replace(old, id="ses_2", instance_id=other.id), None)
    moved = await store.rebind(INSTANCE.id, NEW, NOBODY)
    assert (moved.sessions, moved.starts) == (1, 1)
    found = await store.find_instance("http://new")
    assert found is not None
    assert found.id == moved.instance_id
    now = await store.resolve("ses_1")
    assert now == replace(old, instance_id=found.id, version=old.version + 1)
    untouched = await store.resolve("ses_2")
    assert untouched is not None
    assert untouched.instance_id == other.id
    assert await store.rebind(INSTANCE.id, NEW, NOBODY) == replace(moved, sessions=0, starts=0)


async def test_who_read_a_session_before_it_moved_must_read_it_again(store: Store) -> None:
    old = await tracked(store)
    await store.rebind(INSTANCE.id, NEW, NOBODY)
    with pytest.raises(StaleSessionError):
        await store.begin_turn(old, a_turn(), capacity=ROOMY)


async def test_nothing_moves_while_a_process_acts_on_one_of_them(store: Store) -> None:
    session = await tracked(store)
    await tracked(store, "ses_2")
    await store.begin_turn(session, replace(a_turn(), holder="alive"), capacity=ROOMY)
    assert await store.holders(INSTANCE.id) == [("ses_1", "alive")]
    with pytest.raises(StaleSessionError, match="ses_1"):
        await store.rebind(INSTANCE.id, NEW, NOBODY)
    assert await store.sessions_of(INSTANCE.id, 9) == ["ses_1", "ses_2"]
    assert await store.find_instance("http://new") is None
    assert (await store.rebind(INSTANCE.id, NEW, frozenset({"alive"}))).sessions == 2


async def test_a_finished_turn_and_a_lease_given_back_are_nobodys(store: Store) -> None:
    session = await tracked(store)
    turn = replace(a_turn(), holder="alive")
    await store.begin_turn(session, turn, capacity=ROOMY)
    await store.finish_turn(turn)
    lease = await store.take_lease("ses_1", "alive", None)
    assert lease is not None
    assert await store.holders(INSTANCE.id) == [("ses_1", "alive")]
    await store.release_lease(lease)
    assert await store.holders(INSTANCE.id) == []


async def test_managed_data_has_one_place_and_it_is_over(store: Store) -> None:
    await tracked(store)
    first = await store.rebind(INSTANCE.id, Place(data_id="data"), NOBODY)
    await store.track("none", replace(await tracked(store, "ses_2"), id="ses_3"), None)
    second = await store.rebind(INSTANCE.id, Place(data_id="data"), NOBODY)
    assert first.instance_id == second.instance_id
    instance = await store.instance(first.instance_id)
    assert instance is not None
    assert (instance.dead, instance.data_id, instance.url) == (True, "data", None)


async def test_instances_are_listed_with_how_many_sessions_they_have(store: Store) -> None:
    await tracked(store)
    await tracked(store, "ses_2")
    await store.attach_instance("http://empty")
    assert [(one.id, count) for one, count in await store.instances()] == [(INSTANCE.id, 2)]


@pytest.mark.parametrize("ending", [True, False], ids=["ending", "active"])
async def test_a_session_is_given_up_under_its_lease_only(store: Store, *, ending: bool) -> None:
    await tracked(store)
    if ending:
        await store.begin_end("ses_1", None, EndAction.DELETE)
    lease = await store.take_lease("ses_1", "me", None)
    assert lease is not None
    with pytest.raises(LeaseLostError):
        await store.give_up(a_tombstone(), lease.fence + 1)
    given_up = await store.give_up(a_tombstone(), lease.fence)
    assert given_up.phase is (Phase.ENDING if ending else Phase.ACTIVE)
    assert await store.resolve("ses_1") is None
    assert await store.tombstone("ses_1") == a_tombstone()
    assert await store.lease("ses_1") is None

"""Instances, and what is started in them: read back, counted, and turned into sessions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.errors import (
    RunCapacityError,
    SessionCapacityError,
    StaleSessionError,
    StoreError,
)
from opencode_mcp.records import Capacity, Instance, InstanceKind
from opencode_mcp.store.store import Store
from tests.store.make import INSTANCE, ROOMY, START, a_session, a_start, a_turn, tracked

if TYPE_CHECKING:
    from pathlib import Path

LATER = START + timedelta(days=1)


async def test_an_instance_is_read_back_and_can_be_updated(store: Store) -> None:
    await store.put_instance(INSTANCE)
    assert await store.instance("inst") == INSTANCE
    known = replace(INSTANCE, data_id="uuid")
    await store.put_instance(known)
    assert await store.instance("inst") == known
    assert await store.instance("other") is None


async def test_a_dead_instance_stays_dead_when_an_old_record_of_it_is_put(store: Store) -> None:
    await store.put_instance(replace(INSTANCE, dead=True))
    await store.put_instance(replace(INSTANCE, data_id="late"))
    assert await store.instance("inst") == replace(INSTANCE, data_id="late", dead=True)


async def test_one_url_is_one_instance_also_for_two_stores(store: Store, path: Path) -> None:
    async with Store.open(path) as other:
        mine = await store.attach_instance("http://127.0.0.1:4096")
        assert await other.attach_instance("http://127.0.0.1:4096") == mine
        assert (await other.attach_instance("http://127.0.0.1:4097")).id != mine.id
    assert mine == Instance(mine.id, InstanceKind.ATTACH, "http://127.0.0.1:4096", None, None)
    assert await store.instance(mine.id) == mine


async def test_a_start_is_open_until_it_is_dropped(store: Store) -> None:
    await store.put_instance(INSTANCE)
    await store.record_start(a_start("one"), ROOMY)
    await store.record_start(a_start("two", owner="token:alice"), ROOMY)
    one, two = a_start("one"), a_start("two", owner="token:alice")
    assert await store.open_starts(INSTANCE, LATER) == [one, two]
    assert await store.open_starts(INSTANCE, one.created_at) == []
    assert await store.open_starts(replace(INSTANCE, id="x"), LATER) == []
    assert await store.has_starts(LATER)
    assert not await store.has_starts(one.created_at)
    await store.drop_start("one")
    await store.drop_start("one")
    assert await store.open_starts(INSTANCE, LATER) == [two]


@pytest.mark.parametrize(
    ("dead", "data_id", "tells"),
    [(True, "data", True), (False, "data", False), (True, "other", False), (True, None, False)],
)
async def test_an_instance_tells_of_the_starts_of_a_dead_one_whose_data_it_carries_on(
    store: Store, data_id: str | None, *, dead: bool, tells: bool
) -> None:
    await store.put_instance(replace(INSTANCE, data_id=data_id, dead=dead))
    await store.record_start(a_start(), ROOMY)
    heir = replace(INSTANCE, id="heir", data_id="data")
    assert await store.open_starts(heir, LATER) == ([a_start()] if tells else [])
    assert await store.open_starts(replace(heir, data_id=None), LATER) == []


async def test_instances_in_which_starts_were_left_are_told_unless_they_are_dead(
    store: Store,
) -> None:
    await store.put_instance(INSTANCE)
    await store.put_instance(replace(INSTANCE, id="empty"))
    await store.record_start(a_start(), ROOMY)
    assert await store.instances_of_starts() == [INSTANCE]
    await store.put_instance(replace(INSTANCE, dead=True))
    assert await store.instances_of_starts() == []


async def test_tracking_turns_the_start_into_a_session_with_its_first_turn(store: Store) -> None:
    await store.put_instance(INSTANCE)
    await store.record_start(a_start(), ROOMY)
    await store.track("start", a_session(), a_turn())
    assert await store.open_starts(INSTANCE, LATER) == []
    assert await store.resolve("ses_1") == replace(a_session(), turn_count=1)
    assert await store.turn("ses_1", 1) == a_turn()


async def test_a_session_whose_start_is_gone_is_tracked_all_the_same(store: Store) -> None:
    assert await tracked(store) == await store.resolve("ses_1")


async def test_a_session_that_is_tracked_already_is_refused_and_its_start_stays(
    store: Store,
) -> None:
    session = await tracked(store)
    await store.record_start(a_start(), ROOMY)
    with pytest.raises(StaleSessionError):
        await store.track("start", replace(session, title="other"), None)
    assert await store.resolve("ses_1") == session
    assert await store.open_starts(INSTANCE, LATER) == [a_start()]


async def test_only_a_first_turn_of_that_session_can_be_tracked_with_it(store: Store) -> None:
    await store.put_instance(INSTANCE)
    for turn in (a_turn(number=2), a_turn("ses_2")):
        with pytest.raises(ValueError, match="not the first turn"):
            await store.track("start", a_session(), turn)
    assert await store.resolve("ses_1") is None


async def test_a_session_of_an_unknown_instance_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        await store.track("start", a_session(), None)
    assert await store.resolve("ses_1") is None


async def test_sessions_and_open_starts_use_up_what_their_owner_may_have(store: Store) -> None:
    await tracked(store)
    await tracked(store, "ses_2", owner="token:alice")
    two = Capacity(sessions=2)
    await store.record_start(a_start(), two)
    with pytest.raises(SessionCapacityError, match="2 tracked sessions"):
        await store.record_start(a_start("more"), two)
    await store.record_start(a_start("other", owner="token:alice"), two)
    assert [start.token for start in await store.open_starts(INSTANCE, LATER)] == ["other", "start"]


async def test_turns_and_open_starts_use_up_what_may_run(store: Store) -> None:
    """Ours: whoever began them; a turn that is over gives its place back."""
    one = Capacity(sessions=10, running=1)
    session = await tracked(store)
    begun = await store.begin_turn(session, a_turn(), capacity=one)
    with pytest.raises(RunCapacityError, match="running: 1 turn, the most"):
        await store.record_start(a_start(), one)
    other = await tracked(store, "ses_2")
    with pytest.raises(RunCapacityError):
        await store.begin_turn(other, a_turn("ses_2"), capacity=one)
    await store.finish_turn(a_turn())
    await store.record_start(a_start(), one)
    with pytest.raises(RunCapacityError):
        await store.begin_turn(begun, a_turn(number=2), capacity=one)
    await store.drop_start("start")
    await store.begin_turn(begun, a_turn(number=2), capacity=one)

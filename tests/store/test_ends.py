"""Ends and leases: an accepted end stays accepted, and one process at a time works on it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.errors import (
    EndConflictError,
    LeaseLostError,
    SessionNotFoundError,
    StaleSessionError,
)
from opencode_mcp.lifecycle import IllegalMoveError, Phase
from opencode_mcp.records import EndAction, Ending, Lease
from tests.store.make import ROOMY, START, a_tombstone, a_turn, ended, tracked

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from opencode_mcp.store.store import Store

DELETE, ARCHIVE = EndAction.DELETE, EndAction.ARCHIVE


async def taken(store: Store, holder: str = "me") -> Lease:
    lease = await store.take_lease("ses_1", holder, None)
    assert lease is not None
    return lease


@pytest.mark.parametrize("phase", [Phase.ACTIVE, Phase.QUARANTINED])
async def test_an_end_is_recorded_with_its_action(store: Store, phase: Phase) -> None:
    session = await tracked(store)
    if phase is Phase.QUARANTINED:
        session = await store.move(session, phase)
    ending = await store.begin_end("ses_1", ARCHIVE, DELETE)
    assert ending == replace(
        session,
        phase=Phase.ENDING,
        version=session.version + 1,
        updated_at=ending.updated_at,
        ending=Ending(action=ARCHIVE, since=ending.updated_at),
    )
    assert await store.resolve("ses_1") == ending


async def test_an_end_without_an_action_takes_the_default(store: Store) -> None:
    await tracked(store)
    session = await store.begin_end("ses_1", None, DELETE)
    assert session.ending is not None
    assert session.ending.action is DELETE


@pytest.mark.parametrize(
    ("pending", "asked"),
    [
        pytest.param(ARCHIVE, None, id="none-joins-archive"),
        pytest.param(DELETE, None, id="none-joins-delete"),
        pytest.param(ARCHIVE, ARCHIVE, id="archive-joins-archive"),
        pytest.param(DELETE, DELETE, id="delete-joins-delete"),
    ],
)
async def test_a_second_end_joins_the_first(
    store: Store, pending: EndAction, asked: EndAction | None
) -> None:
    await tracked(store)
    first = await store.begin_end("ses_1", pending, DELETE)
    # The default of the second must not decide: it joins.
    assert await store.begin_end("ses_1", asked, DELETE) == first
    assert await store.begin_end("ses_1", asked, ARCHIVE) == first


async def test_a_delete_replaces_a_pending_archive(store: Store) -> None:
    await tracked(store)
    first = await store.begin_end("ses_1", ARCHIVE, DELETE)
    second = await store.begin_end("ses_1", DELETE, DELETE)
    assert first.ending is not None
    assert second.ending == replace(first.ending, action=DELETE)
    assert await store.resolve("ses_1") == second


async def test_an_archive_over_a_pending_delete_is_a_conflict(store: Store) -> None:
    await tracked(store)
    first = await store.begin_end("ses_1", DELETE, DELETE)
    with pytest.raises(EndConflictError):
        await store.begin_end("ses_1", ARCHIVE, DELETE)
    assert await store.resolve("ses_1") == first


async def test_an_end_of_an_unknown_or_ended_session_finds_nothing(store: Store) -> None:
    await ended(store)
    for session_id in ("ses_1", "ses_none"):
        with pytest.raises(SessionNotFoundError):
            await store.begin_end(session_id, None, DELETE)
        assert await store.take_lease(session_id, "me", None) is None


async def test_attempts_and_the_sent_delete_are_noted(store: Store) -> None:
    await tracked(store)
    begun = await store.begin_end("ses_1", None, DELETE)
    first = await taken(store)
    await store.note_delete_sent("ses_1", first.fence)
    await store.note_failure("ses_1", first.fence, "503")
    await store.release_lease(first)
    second = await taken(store)
    assert (await store.endings(START, 1))[0].ending == Ending(
        action=DELETE, since=begun.updated_at, attempt=2, delete_sent=True
    )
    await store.note_failure("ses_1", second.fence, "again")
    session = await store.resolve("ses_1")
    assert session is not None
    assert session.ending == Ending(
        action=DELETE, since=begun.updated_at, attempt=2, last_error="again", delete_sent=True
    )
    assert session.updated_at == begun.updated_at  # our retries are not somebody's use of it
    assert session.version > begun.version


async def test_pending_ends_are_listed_with_when_they_are_tried_again(store: Store) -> None:
    await tracked(store, "ses_2")
    await tracked(store)
    await store.begin_end("ses_1", None, DELETE)
    at = START + timedelta(minutes=1)
    await store.note_next_try("ses_1", at, "why")
    await store.note_next_try("ses_2", at, "why")  # not ending: nothing to note
    await store.note_next_try("ses_3", at, "why")
    assert await store.endings(START, 10) == []  # not due
    assert await store.endings(START - timedelta(days=1), 10)  # the clock was set back since
    (pending,) = await store.endings(at, 10)
    assert pending.id == "ses_1"
    assert pending.ending is not None
    assert pending.ending.next_at == at
    assert await store.endings(at, 0) == []


async def test_a_session_is_idle_once_nobody_used_it_for_so_long(store: Store) -> None:
    session = await tracked(store)
    turn = a_turn()
    began = await store.begin_turn(session, turn, capacity=ROOMY)
    soon, late = began.updated_at + timedelta(minutes=1), START + timedelta(hours=2)

    async def idle_ids(before: datetime) -> list[str]:
        return [idle.id for idle in await store.idle_sessions(before, 10)]

    assert await idle_ids(soon) == []  # its turn may be at work
    assert await idle_ids(late) == ["ses_1"]  # nobody saw its end, but its deadline is long past
    finished = await store.finish_turn(turn)
    assert finished.finished_at is not None
    assert await idle_ids(finished.finished_at) == []
    assert await idle_ids(soon) == ["ses_1"]
    assert await store.idle_sessions(soon, 0) == []
    assert not await store.begin_idle_end("ses_1", finished.finished_at, ARCHIVE)
    assert not await store.begin_idle_end("ses_none", soon, ARCHIVE)
    assert await store.begin_idle_end("ses_1", soon, ARCHIVE)
    (ending,) = await store.endings(late, 10)
    assert ending.ending == Ending(action=ARCHIVE, since=ending.updated_at)
    assert await idle_ids(late) == []
    assert not await store.begin_idle_end("ses_1", late, DELETE)


async def test_a_finished_end_leaves_a_tombstone_and_nothing_else(store: Store) -> None:
    session = await tracked(store)
    await store.begin_turn(session, a_turn(), capacity=ROOMY)
    await store.begin_end("ses_1", None, DELETE)
    lease = await taken(store)
    await store.finish_end(a_tombstone(), lease.fence)
    assert await store.tombstone("ses_1") == a_tombstone()
    assert await store.resolve("ses_1") is None
    assert await store.turn("ses_1", 1) is None
    assert await store.sessions("local", offset=0, limit=1) == ([], 0)
    await store.release_lease(lease)
    with pytest.raises(LeaseLostError):
        await store.finish_end(a_tombstone(), lease.fence)


async def test_an_archive_that_a_delete_replaced_meanwhile_cannot_be_finished(
    store: Store,
) -> None:
    await tracked(store)
    await store.begin_end("ses_1", ARCHIVE, DELETE)
    lease = await taken(store)
    session = await store.begin_end("ses_1", DELETE, DELETE)
    assert session.ending is not None
    assert session.ending.action is DELETE
    with pytest.raises(StaleSessionError):
        await store.finish_end(replace(a_tombstone(), action=ARCHIVE), lease.fence)
    assert await store.resolve("ses_1") == session
    assert await store.tombstone("ses_1") is None
    await store.finish_end(a_tombstone(), lease.fence)


async def test_a_session_that_was_not_asked_to_end_cannot_be_finished(store: Store) -> None:
    session = await tracked(store)
    lease = await taken(store)
    with pytest.raises(IllegalMoveError):
        await store.finish_end(a_tombstone(), lease.fence)
    with pytest.raises(ValueError, match="not ending"):
        await store.note_failure("ses_1", lease.fence, "why")
    assert await store.resolve("ses_1") == session
    assert await store.tombstone("ses_1") is None


@pytest.mark.parametrize("how", ["taken-over", "released", "never-taken"])
async def test_nothing_is_written_under_a_lease_that_is_not_in_force(
    store: Store, how: str
) -> None:
    await tracked(store)
    await store.begin_end("ses_1", None, DELETE)
    fence = 1
    if how != "never-taken":
        lease = await taken(store)
        fence = lease.fence
        if how == "taken-over":
            assert await store.take_lease("ses_1", "other", lease)
        else:
            await store.release_lease(lease)
    left = await store.resolve("ses_1")
    with pytest.raises(LeaseLostError):
        await store.note_failure("ses_1", fence, "why")
    with pytest.raises(LeaseLostError):
        await store.note_delete_sent("ses_1", fence)
    with pytest.raises(LeaseLostError):
        await store.finish_end(a_tombstone(), fence)
    assert await store.resolve("ses_1") == left
    assert await store.tombstone("ses_1") is None


async def test_anothers_lease_is_refused(store: Store) -> None:
    await tracked(store)
    lease = await taken(store)
    assert await store.take_lease("ses_1", "other", None) is None
    await store.begin_end("ses_1", None, DELETE)
    await store.note_delete_sent("ses_1", lease.fence)  # still in force


@pytest.mark.parametrize("change", ["renewals = renewals + 1", "holder = 'third'", "fence = 9"])
async def test_a_lease_that_has_changed_since_it_was_read_is_not_taken_over(
    store: Store, path: Path, change: str
) -> None:
    await tracked(store)
    read = await taken(store)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(f"UPDATE leases SET {change}")  # noqa: S608 - our own words
    assert await store.take_lease("ses_1", "other", read) is None
    assert await store.take_lease("ses_1", "other", await store.lease("ses_1"))


async def test_a_lease_is_renewed_while_it_is_in_force(store: Store) -> None:
    await tracked(store)
    lease = await taken(store)
    await store.renew_lease(lease)
    await store.renew_lease(lease)
    assert await store.lease("ses_1") == replace(lease, renewals=2)
    await store.release_lease(lease)
    with pytest.raises(LeaseLostError):
        await store.renew_lease(lease)
    taken_over = await store.take_lease("ses_1", "other", None)
    with pytest.raises(LeaseLostError):
        await store.renew_lease(lease)
    assert await store.lease("ses_1") == taken_over
    assert await store.lease("ses_none") is None


async def test_each_taking_of_a_lease_has_a_higher_fence(store: Store) -> None:
    await tracked(store)
    first = await taken(store)
    again = await taken(store)
    from_dead = await store.take_lease("ses_1", "other", again)
    assert from_dead is not None
    await store.release_lease(first)  # not in force: frees nothing
    assert await store.take_lease("ses_1", "me", None) is None
    await store.release_lease(from_dead)
    freed = await taken(store)
    fences = [first.fence, again.fence, from_dead.fence, freed.fence]
    assert fences == sorted(set(fences))
    assert from_dead.holder == "other"


async def test_old_tombstones_are_purged_and_young_ones_stay(store: Store) -> None:
    for days, session_id in enumerate(("ses_new", "ses_old")):
        await tracked(store, session_id)
        await store.begin_end(session_id, None, DELETE)
        lease = await store.take_lease(session_id, "me", None)
        assert lease is not None
        stone = a_tombstone(session_id, ended_at=START - timedelta(days=days))
        await store.finish_end(stone, lease.fence)
    await tracked(store)
    await store.add_alias("thread", "ses_1")
    assert await store.purge_tombstones(START) == 1
    assert await store.tombstone("ses_old") is None
    assert await store.tombstone("ses_new") is not None
    assert await store.resolve("thread") is not None  # an alias of a living session stays
    assert await store.purge_tombstones(START) == 0

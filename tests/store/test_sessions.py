"""Sessions and their aliases: what is written is read back, and nothing more."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_mcp.errors import InvalidArgumentError, SessionNotFoundError, StaleSessionError
from opencode_mcp.lifecycle import IllegalMoveError, Phase
from opencode_mcp.records import EndAction
from opencode_mcp.store.rows import to_moment, to_text
from opencode_mcp.store.sessions import _PAGE_OF_ALL, _PAGE_OF_OWNER
from tests.store.make import INSTANCE, ROOMY, START, a_session, a_tombstone, a_turn, ended, tracked

if TYPE_CHECKING:
    from opencode_mcp.store.store import Store


async def test_pages_are_newest_first_and_each_owner_sees_its_own(store: Store) -> None:
    await store.put_instance(INSTANCE)
    for number in range(5):
        owner = "token:alice" if number == 2 else "local"
        await store.track("no-start", a_session(f"ses_{number}", owner=owner, age_s=number), None)

    async def page(owner: str | None, offset: int, limit: int) -> tuple[list[str], int]:
        sessions, total = await store.sessions(owner, offset=offset, limit=limit)
        return [session.id for session in sessions], total

    assert await page("local", 0, 2) == (["ses_0", "ses_1"], 4)
    assert await page("local", 2, 9) == (["ses_3", "ses_4"], 4)
    assert await page("local", 4, 9) == ([], 4)
    assert await page("token:alice", 0, 9) == (["ses_2"], 1)
    assert await page("token:bob", 0, 9) == ([], 0)
    assert await page(None, 1, 3) == (["ses_1", "ses_2", "ses_3"], 5)
    in_instance = await store.witnesses(a_session("ses_none"), 2)
    assert [session.id for session in in_instance] == ["ses_0", "ses_1"]
    assert in_instance[0] not in await store.witnesses(in_instance[0], 9)
    elsewhere = replace(a_session("ses_none"), instance_id="other")
    assert await store.witnesses(elsewhere, 2) == []
    await store.begin_end("ses_0", None, EndAction.DELETE)  # it is the newest updated now
    assert (await store.witnesses(a_session("ses_none"), 9))[-1].id == "ses_0"


@pytest.mark.parametrize(
    ("sql", "index"),
    [
        pytest.param(_PAGE_OF_OWNER, "sessions_by_owner", id="of-one-owner"),
        pytest.param(_PAGE_OF_ALL, "sessions_by_update", id="of-everybody"),
    ],
)
async def test_a_page_is_read_from_an_index_without_sorting_the_table(
    store: Store, sql: str, index: str
) -> None:
    plan = await store._database.rows(  # noqa: SLF001 - the plan is no business of callers
        f"EXPLAIN QUERY PLAN {sql}", {"owner": "local", "offset": 0, "limit": 100}
    )
    details = [row["detail"] for row in plan]
    assert any(detail.endswith(index) or f"{index} (" in detail for detail in details)
    assert "SCAN sessions" not in details
    # The one sort is the outer one, of the rows of the page.
    assert [d for d in details if "B-TREE" in d] == ["USE TEMP B-TREE FOR ORDER BY"]
    assert details[-1] == "USE TEMP B-TREE FOR ORDER BY"


async def test_a_turn_moves_its_session_to_the_top_of_the_page(store: Store) -> None:
    await store.put_instance(INSTANCE)
    await store.track("no-start", a_session("ses_new"), None)
    old = a_session("ses_old", age_s=60)
    await store.track("no-start", old, None)
    await store.begin_turn(old, a_turn("ses_old"), capacity=ROOMY)
    sessions, _ = await store.sessions("local", offset=0, limit=1)
    assert [session.id for session in sessions] == ["ses_old"]


async def test_a_move_is_recorded_and_makes_what_others_read_stale(store: Store) -> None:
    session = await tracked(store)
    moved = await store.move(session, Phase.QUARANTINED)
    assert moved == replace(
        session, phase=Phase.QUARANTINED, version=2, updated_at=moved.updated_at
    )
    assert moved.updated_at > session.updated_at
    assert await store.resolve("ses_1") == moved
    with pytest.raises(StaleSessionError):
        await store.move(session, Phase.QUARANTINED)
    back = await store.move(moved, Phase.ACTIVE)
    assert await store.resolve("ses_1") == back


async def test_a_move_that_the_table_does_not_allow_changes_nothing(store: Store) -> None:
    session = await tracked(store)
    with pytest.raises(IllegalMoveError):
        await store.move(session, Phase.ACTIVE)
    with pytest.raises(ValueError, match="more than a phase"):
        await store.move(session, Phase.ENDING)
    assert await store.resolve("ses_1") == session


async def test_a_session_of_a_dead_instance_goes_on_in_the_next(store: Store) -> None:
    session = await tracked(store)
    await store.put_instance(replace(INSTANCE, id="next"))
    rehomed = await store.rehome(session, "next")
    assert rehomed == replace(session, instance_id="next", version=2)
    assert await store.resolve("ses_1") == rehomed
    with pytest.raises(StaleSessionError):
        await store.rehome(session, "inst")


async def test_a_write_to_a_session_that_is_gone_is_stale(store: Store) -> None:
    session = a_session()
    await ended(store)
    with pytest.raises(StaleSessionError):
        await store.move(session, Phase.QUARANTINED)
    with pytest.raises(StaleSessionError):
        await store.begin_turn(session, a_turn(), capacity=ROOMY)


async def test_an_alias_names_its_session(store: Store) -> None:
    session = await tracked(store)
    await store.add_alias("thread-old", "ses_1")
    await store.add_alias("thread-old", "ses_1")
    assert await store.resolve("thread-old") == session
    assert await store.resolve("thread-other") is None


async def test_an_alias_that_names_something_else_is_refused(store: Store) -> None:
    await tracked(store)
    await tracked(store, "ses_2")
    await ended(store, "ses_gone")
    await store.add_alias("taken", "ses_2")
    for alias in ("ses_1", "ses_2", "ses_gone", "taken"):
        with pytest.raises(InvalidArgumentError):
            await store.add_alias(alias, "ses_1")
    with pytest.raises(SessionNotFoundError):
        await store.add_alias("thread", "ses_none")
    assert await store.resolve("taken") == await store.resolve("ses_2")


async def test_a_session_id_wins_over_an_alias_of_the_same_name(store: Store) -> None:
    await tracked(store)
    await store.add_alias("ses_2", "ses_1")
    second = await tracked(store, "ses_2")
    assert await store.resolve("ses_2") == second


async def test_an_alias_leads_to_the_tombstone_until_that_is_purged(store: Store) -> None:
    await tracked(store)
    await store.add_alias("thread", "ses_1")
    await store.begin_end("ses_1", None, EndAction.DELETE)
    lease = await store.take_lease("ses_1", "me", None)
    assert lease is not None
    stone = a_tombstone()
    await store.finish_end(stone, lease.fence)
    assert await store.resolve("thread") is None
    assert await store.tombstone("thread") == await store.tombstone("ses_1") == stone
    assert await store.purge_tombstones(START + timedelta(days=1)) == 1
    assert await store.tombstone("thread") is None
    await tracked(store, "ses_2")
    await store.add_alias("thread", "ses_2")  # free again


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9.5))])))
def test_a_moment_survives_as_text_and_is_utc(moment: datetime) -> None:
    if datetime(1, 1, 2, tzinfo=UTC) < moment < datetime(9999, 12, 30, tzinfo=UTC):
        assert to_moment(to_text(moment)) == moment
        assert to_moment(to_text(moment)).utcoffset() == timedelta(0)
        assert len(to_text(moment)) == len(to_text(START))


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without a time zone"):
        to_text(datetime(2026, 1, 1))  # noqa: DTZ001 - the point

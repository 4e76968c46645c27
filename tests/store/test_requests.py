"""Request-ids: one claim, bound with its turn, and not longer than it lasts."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.errors import RequestPendingError, RunCapacityError
from opencode_mcp.records import Capacity, EndAction
from opencode_mcp.store.migrate import migrate, migration_folder, migrations
from opencode_mcp.store.store import Store
from tests.store.make import (
    INSTANCE,
    ROOMY,
    START,
    a_claim,
    a_session,
    a_tombstone,
    a_turn,
    tracked,
)

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.records import RequestClaim

EXPIRED = timedelta(hours=24)
BOUND = replace(a_claim(), session_id="ses_1", turn=1)


async def bound(store: Store, claim: RequestClaim) -> None:
    """Claim an id, and begin its turn in a new session."""
    await store.claim_request(claim)
    await store.put_instance(INSTANCE)
    await store.track("no-start", a_session(), a_turn(), claim)


async def test_the_first_claims_it_and_the_next_joins_as_its_newest(store: Store) -> None:
    assert await store.claim_request(a_claim()) == a_claim()
    joined = await store.claim_request(a_claim("call-2"))
    assert joined == replace(a_claim(), newest_call="call-2")
    assert await store.request("local", "id") == joined


async def test_of_many_at_once_one_claims_it(store: Store) -> None:
    calls = [f"call-{number}" for number in range(20)]
    found = await asyncio.gather(*(store.claim_request(a_claim(call)) for call in calls))
    assert len({claim.call for claim in found}) == 1
    assert {claim.newest_call for claim in found} == set(calls)


async def test_a_call_with_another_digest_changes_nothing(store: Store) -> None:
    await store.claim_request(a_claim())
    assert await store.claim_request(a_claim("call-2", digest="other")) == a_claim()
    assert await store.request("local", "id") == a_claim()


async def test_each_owner_has_its_own_ids(store: Store) -> None:
    await store.claim_request(a_claim())
    theirs = a_claim("call-2", owner="token:alice", digest="other")
    assert await store.claim_request(theirs) == theirs
    assert await store.request("token:bob", "id") is None


async def test_a_session_and_its_first_turn_are_bound_to_their_claim(store: Store) -> None:
    await bound(store, a_claim())
    assert await store.request("local", "id") == BOUND


async def test_a_later_turn_is_bound_to_its_claim(store: Store) -> None:
    session = await tracked(store)
    await store.claim_request(a_claim())
    await store.begin_turn(session, a_turn(), capacity=ROOMY, claim=a_claim())
    assert await store.request("local", "id") == BOUND


async def test_a_turn_whose_claim_is_anothers_by_now_is_not_recorded(store: Store) -> None:
    session = await tracked(store)
    await store.claim_request(a_claim("call-2"))
    with pytest.raises(RequestPendingError):
        await store.begin_turn(session, a_turn(), capacity=ROOMY, claim=a_claim())
    with pytest.raises(RequestPendingError):
        await store.track("start", a_session("ses_2"), a_turn("ses_2"), a_claim())
    assert await store.turn("ses_1", 1) is None
    assert await store.resolve("ses_2") is None
    assert await store.request("local", "id") == a_claim("call-2")


async def test_a_claim_is_bound_once(store: Store) -> None:
    await bound(store, a_claim())
    session = await tracked(store, "ses_2")
    with pytest.raises(RequestPendingError):
        await store.begin_turn(session, a_turn("ses_2"), capacity=ROOMY, claim=a_claim())


async def test_a_turn_that_is_not_recorded_binds_nothing(store: Store) -> None:
    await store.claim_request(a_claim())
    first = await tracked(store)
    await store.begin_turn(first, a_turn(), capacity=ROOMY)
    second = await tracked(store, "ses_2")
    with pytest.raises(RunCapacityError):
        await store.begin_turn(
            second, a_turn("ses_2"), capacity=Capacity(10, running=1), claim=a_claim()
        )
    assert await store.request("local", "id") == a_claim()


async def test_a_claim_without_a_turn_is_taken_over_only_from_who_was_seen(store: Store) -> None:
    await store.claim_request(a_claim())
    second, third = a_claim("call-2", digest="other"), a_claim("call-3", digest="third")
    assert await store.claim_request(second, over=a_claim()) == second
    assert await store.claim_request(third, over=a_claim()) == second


async def test_a_claim_with_a_turn_is_not_taken_over(store: Store) -> None:
    await bound(store, a_claim())
    found = await store.claim_request(a_claim("call-2"), over=a_claim())
    assert found == replace(BOUND, newest_call="call-2")


async def test_an_id_is_free_once_it_has_expired(store: Store) -> None:
    await bound(store, a_claim())
    early = replace(a_claim("call-2"), created_at=START + EXPIRED - timedelta(microseconds=1))
    assert (await store.claim_request(early)).call == "call-1"
    late = replace(a_claim("call-3", digest="other"), created_at=START + EXPIRED)
    assert await store.claim_request(late) == late


async def test_an_id_is_free_once_its_prompt_was_refused(store: Store) -> None:
    await bound(store, a_claim())
    await store.refuse_turn(a_turn())
    anew = a_claim("call-2", digest="other")
    assert await store.claim_request(anew) == anew


async def test_only_a_claim_for_which_nothing_was_sent_is_released_and_by_its_own_call(
    store: Store,
) -> None:
    await store.claim_request(a_claim())
    assert not await store.release_request(a_claim("call-2"))
    assert await store.release_request(a_claim())
    assert await store.request("local", "id") is None
    await bound(store, a_claim())
    assert not await store.release_request(a_claim())
    await store.finish_turn(a_turn())
    assert not await store.release_request(a_claim())
    await store.refuse_turn(a_turn())
    assert await store.release_request(a_claim())


async def test_it_outlives_its_session_until_it_expires(store: Store) -> None:
    await store.claim_request(a_claim())
    session = await tracked(store)
    await store.begin_turn(session, a_turn(), capacity=ROOMY, claim=a_claim())
    await store.begin_end("ses_1", None, EndAction.DELETE)
    lease = await store.take_lease("ses_1", "me", None)
    assert lease is not None
    await store.finish_end(a_tombstone("ses_1"), lease.fence)
    assert await store.turn("ses_1", 1) is None
    assert await store.request("local", "id") == BOUND
    assert await store.claim_request(a_claim("call-2")) == replace(BOUND, newest_call="call-2")
    assert await store.purge_requests(START + EXPIRED - timedelta(microseconds=1)) == 0
    assert await store.purge_requests(START + EXPIRED) == 1
    assert await store.request("local", "id") is None


async def test_a_database_of_before_takes_request_ids_and_keeps_its_sessions(path: Path) -> None:
    folder = path.parent / "before"
    folder.mkdir(parents=True)
    for migration in migrations(migration_folder()):
        if "CREATE TABLE requests" not in migration.path.read_text(encoding="utf-8"):
            shutil.copy(migration.path, folder)
        else:
            break
    path.touch(mode=0o600)
    migrate(path, folder)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("INSERT INTO instances (id, kind) VALUES ('inst', 'managed')")
        file.execute(
            "INSERT INTO sessions (id, owner, instance_id, directory, phase, version, created_at,"
            " updated_at, turn_count) VALUES ('ses_1', 'local', 'inst', '/', 'active', 1, ?, ?, 0)",
            [START.isoformat(timespec="microseconds")] * 2,
        )
    async with Store.open(path) as store:
        session = await store.resolve("ses_1")
        assert session is not None
        await store.claim_request(a_claim())
        await store.begin_turn(session, a_turn(), capacity=ROOMY, claim=a_claim())
        assert await store.request("local", "id") == BOUND

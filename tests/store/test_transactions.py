"""Writes are whole, whoever is cancelled and whatever fails (style B1, B2, B3)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.clock import Clock
from opencode_mcp.errors import StaleSessionError, StoreError, StoreUnusableError
from opencode_mcp.records import StopReason
from opencode_mcp.store.connection import Database, Transaction, open_database
from opencode_mcp.store.store import Store
from tests.store.make import INSTANCE, LIMIT_S, ROOMY, a_turn, insert, names, tracked

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_reader_never_sees_half_a_write(database: Database) -> None:
    """Trap B2: no read lands in an open transaction."""
    half, go_on = asyncio.Event(), asyncio.Event()

    async def work(write: Transaction) -> None:
        await insert(write, "a")
        half.set()
        await go_on.wait()
        msg = "changed its mind"
        raise StaleSessionError(msg)

    writing = asyncio.create_task(database.write(work))
    await half.wait()
    assert await names(database) == []
    go_on.set()
    with pytest.raises(StaleSessionError):
        await writing
    assert await names(database) == []


async def test_a_write_that_fails_leaves_nothing_and_the_next_works(database: Database) -> None:
    async def work(write: Transaction) -> None:
        await insert(write, "a")
        await insert(write, "a")

    with pytest.raises(StoreError, match="UNIQUE"):
        await database.write(work)
    assert await names(database) == []
    await database.write(lambda write: insert(write, "b"))
    assert await names(database) == ["b"]


async def test_a_read_cannot_write(database: Database) -> None:
    with pytest.raises(StoreUnusableError):
        await database.rows("DELETE FROM tombstones")


async def test_a_full_disk_is_an_error_that_says_so_and_costs_nothing(path: Path) -> None:
    async with asyncio.timeout(LIMIT_S), open_database(path, Clock()) as database:
        store = Store(database, Clock())
        session = await tracked(store)

        async def limit(write: Transaction, pages: int) -> None:
            await write.row(f"PRAGMA max_page_count = {pages}")

        await database.write(lambda write: limit(write, 1))  # as many as there are now
        with pytest.raises(StoreUnusableError, match="free space"):
            await store.add_alias("x" * 100_000, "ses_1")
        assert await store.resolve("ses_1") == session
        await database.write(lambda write: limit(write, 1_000_000))
        await store.add_alias("x" * 100_000, "ses_1")
        assert await store.resolve("x" * 100_000) == session


async def test_500_writers_of_two_stores_on_one_turn_each_lose_or_win_whole(path: Path) -> None:
    async with Store.open(path) as one, Store.open(path) as two:
        session = await tracked(one)
        for number in range(1, 6):
            stores = [one, two] * 50
            results = await asyncio.gather(
                *(
                    store.begin_turn(session, a_turn(number=number), capacity=ROOMY)
                    for store in stores
                ),
                return_exceptions=True,
            )
            won = [result for result in results if not isinstance(result, BaseException)]
            lost = [result for result in results if isinstance(result, StaleSessionError)]
            assert (len(won), len(lost)) == (1, 99)
            session = won[0]
        assert await two.resolve("ses_1") == session
        assert session.turn_count == 5


async def test_two_that_read_and_then_change_the_same_wait_for_each_other(path: Path) -> None:
    """Case 36: a transaction that only becomes a writer is told "locked" at once, unheard."""
    async with Store.open(path) as one, Store.open(path) as two:
        await tracked(one)

        async def change(store: Store, name: str) -> None:
            for number in range(250):
                await store.add_alias(f"{name}-{number}", "ses_1")

        await asyncio.gather(change(one, "one"), change(two, "two"))
        assert len(await one.aliases("ses_1")) == 500


async def test_two_reasons_at_once_are_one_reason(path: Path) -> None:
    async with Store.open(path) as one, Store.open(path) as two:
        session = await tracked(one)
        for number in range(1, 21):
            turn = a_turn(number=number)
            session = await one.begin_turn(session, turn, capacity=ROOMY)
            first, second = await asyncio.gather(
                one.set_stop_reason(turn, StopReason.CANCEL),
                two.set_stop_reason(turn, StopReason.TIMEOUT),
            )
            assert first == second == await one.turn("ses_1", number)


async def test_a_lock_that_is_never_given_up_is_an_error_that_says_so(path: Path) -> None:
    async with Store.open(path) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnusableError, match="locked"):
                await store.put_instance(INSTANCE)
            other.execute("ROLLBACK")
        await store.put_instance(INSTANCE)
        assert await store.instance("inst") == INSTANCE

"""Whoever is cancelled, and whenever: a write is whole and the next one works (style B3)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import AsyncExitStack, closing
from typing import TYPE_CHECKING

import anyio
import pytest

from opencode_mcp.clock import Clock
from opencode_mcp.errors import StoreUnusableError
from opencode_mcp.store.connection import Database, Transaction, open_database
from opencode_mcp.store.store import Store
from tests.store.make import INSTANCE, LIMIT_S, ROOMY, a_session, a_turn, insert, names, tracked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    Cancelling = Callable[[Callable[[], Awaitable[object]], asyncio.Event], Awaitable[None]]


async def cancel_once(write: Callable[[], Awaitable[object]], reached: asyncio.Event) -> None:
    task = asyncio.ensure_future(write())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def cancel_twice(write: Callable[[], Awaitable[object]], reached: asyncio.Event) -> None:
    """Cancel it, and again where it waits for its own clean-up."""

    async def stubborn() -> None:
        try:
            await write()
        finally:
            await asyncio.Event().wait()

    task = asyncio.create_task(stubborn())
    await reached.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def cancel_scope(write: Callable[[], Awaitable[object]], reached: asyncio.Event) -> None:
    """Cancel an anyio scope: it cancels again at each await, as FastMCP's time-out does."""

    async def call() -> None:
        await write()

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await reached.wait()
            scope.cancel()
    assert scope.cancelled_caught


CANCELLING = pytest.mark.parametrize(
    "cancel",
    [
        pytest.param(cancel_once, id="once"),
        pytest.param(cancel_twice, id="twice"),
        pytest.param(cancel_scope, id="anyio-scope"),
    ],
)


@CANCELLING
@pytest.mark.parametrize("point", [0, 1, 2])
async def test_a_write_whose_caller_is_cancelled_inside_it_is_done_whole(
    database: Database, cancel: Cancelling, point: int
) -> None:
    """Points: after BEGIN, between the statements, before COMMIT."""
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def pause(at: int) -> None:
        if at == point:
            reached.set()
            await go_on.wait()

    async def work(write: Transaction) -> None:
        await pause(0)
        await insert(write, "a")
        await pause(1)
        await insert(write, "b")
        await pause(2)

    await cancel(lambda: database.write(work), reached)
    assert await names(database) == []  # the caller is gone, the transaction still open
    go_on.set()
    await database.write(lambda write: insert(write, "c"))
    assert await names(database) == ["a", "b", "c"]


@CANCELLING
async def test_a_write_whose_caller_is_cancelled_while_it_queues_is_done(
    database: Database, cancel: Cancelling
) -> None:
    first_is_in, go_on, queued = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def first(write: Transaction) -> None:
        first_is_in.set()
        await go_on.wait()
        await insert(write, "first")

    async def second() -> None:
        queued.set()
        await database.write(lambda write: insert(write, "second"))

    holding = asyncio.create_task(database.write(first))
    await first_is_in.wait()
    await cancel(second, queued)
    go_on.set()
    await holding
    await database.write(lambda write: insert(write, "third"))
    assert await names(database) == ["first", "second", "third"]


@CANCELLING
async def test_a_write_whose_caller_is_cancelled_while_another_process_writes_is_done(
    database: Database, path: Path, cancel: Cancelling
) -> None:
    begun = asyncio.Event()

    async def write() -> None:
        begun.set()
        await database.write(lambda write: insert(write, "mine"))

    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await cancel(write, begun)
        assert await names(database) == []  # readers do not wait for writers
        other.execute("ROLLBACK")
    await database.write(lambda write: insert(write, "next"))
    assert await names(database) == ["mine", "next"]


async def test_a_store_call_cancelled_at_any_moment_is_done_whole_or_not_at_all(
    store: Store,
) -> None:
    """Sweep the moments, counted in turns of the event loop."""
    session = await tracked(store)
    for turns_of_loop in range(60):
        turn = a_turn(number=session.turn_count + 1)
        task = asyncio.create_task(store.begin_turn(session, turn, capacity=ROOMY))
        for _ in range(turns_of_loop):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        # A write waits for those before it: after this the cancelled one has had its end.
        await store.put_instance(INSTANCE)
        now = await store.resolve("ses_1")
        assert now
        assert (now.turn_count == turn.number) == (await store.turn("ses_1", turn.number) == turn)
        session = now
    assert session.turn_count > 1


async def test_a_read_that_is_cancelled_disturbs_nobody(store: Store) -> None:
    session = await tracked(store)
    for turns_of_loop in range(20):
        task = asyncio.create_task(store.resolve("ses_1"))
        for _ in range(turns_of_loop):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert await store.resolve("ses_1") == session


async def test_closing_waits_for_a_write_in_flight(path: Path) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def work(write: Transaction) -> None:
        begun.set()
        await go_on.wait()
        await insert(write, "late")

    async with asyncio.timeout(LIMIT_S), open_database(path, Clock()) as database:
        await cancel_once(lambda: database.write(work), begun)
        closing_it = asyncio.create_task(database.close())
        await asyncio.sleep(0)
        with pytest.raises(StoreUnusableError):
            await database.write(lambda write: insert(write, "too late"))
        with pytest.raises(StoreUnusableError):
            await database.rows("SELECT 1")
        assert not closing_it.done()
        go_on.set()
        await closing_it
    async with open_database(path, Clock()) as database:
        assert await names(database) == ["late"]


async def test_a_store_closes_also_in_a_cancelled_scope(path: Path) -> None:
    with anyio.CancelScope() as scope:
        async with Store.open(path) as store:
            await tracked(store)
            scope.cancel()
            await anyio.sleep_forever()
    async with asyncio.timeout(LIMIT_S), Store.open(path) as store:
        assert await store.resolve("ses_1") == a_session()


def test_a_loop_that_is_torn_down_inside_a_write_leaves_no_transaction(path: Path) -> None:
    """Asyncio cancels every task then, the transaction's own included."""

    async def main(left_open: AsyncExitStack) -> None:
        database = await left_open.enter_async_context(open_database(path, Clock()))
        inside = asyncio.Event()

        async def work(write: Transaction) -> None:
            await insert(write, "half")
            inside.set()
            await asyncio.Event().wait()

        async def hold() -> None:
            async with left_open:
                await database.write(work)

        holding = asyncio.create_task(hold())
        await inside.wait()
        assert not holding.done()

    asyncio.run(main(AsyncExitStack()))
    with closing(sqlite3.connect(path, timeout=0)) as file:
        assert file.execute("SELECT count(*) FROM tombstones").fetchone() == (0,)
        file.execute("DELETE FROM tombstones")
    assert not path.with_name(f"{path.name}-wal").exists()  # closed, not just abandoned

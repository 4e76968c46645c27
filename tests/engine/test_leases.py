"""Leases: who may act on an end, judged without any clock but one's own."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import AsyncExitStack, closing
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.clock import Clock
from opencode_mcp.engine.leases import LEASE_S, HeldLease, Leases
from opencode_mcp.errors import LeaseLostError
from opencode_mcp.store.store import Store
from tests.store.make import tracked
from tests.support.polling import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class Hand(Clock):
    """A monotonic clock that the test moves; sleeps end when their moment has come."""

    def __init__(self) -> None:
        self._now = 100.0
        self._sleeping: list[tuple[float, asyncio.Event]] = []

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        event = asyncio.Event()
        self._sleeping.append((self._now + seconds, event))
        await event.wait()

    def move(self, seconds: float) -> None:
        self._now += seconds
        for until, event in self._sleeping:
            if until <= self._now:
                event.set()

    async def until_asleep(self) -> None:
        async def asleep() -> bool:
            return any(not event.is_set() for _, event in self._sleeping)

        await eventually(asleep, what="the renewal waits")


class Processes:
    """Two processes of ours on one database, each with a clock of its own."""

    def __init__(self, path: Path, store: Store) -> None:
        self.path = path
        self.store = store
        self.dead: set[str] = set()
        self.clocks = {name: Hand() for name in ("one", "two")}
        self.one, self.two = (self._leases(name) for name in ("one", "two"))

    def _leases(self, name: str) -> Leases:
        return Leases(
            store=self.store, clock=self.clocks[name], holder=name, is_dead=self.dead.__contains__
        )


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[Processes]:
    path = tmp_path / "tracking.db"
    async with Store.open(path) as store:
        await tracked(store)
        yield Processes(path, store)


async def held(leases: Leases) -> HeldLease:
    lease = await leases.take("ses_1")
    assert lease is not None
    return lease


async def test_a_lease_that_is_not_renewed_runs_out_on_the_observers_clock(
    processes: Processes,
) -> None:
    await held(processes.one)  # never entered: its process is frozen, say
    assert await processes.two.take("ses_1") is None
    processes.clocks["one"].move(LEASE_S * 9)  # whatever the holder's clock says
    processes.clocks["two"].move(LEASE_S - 0.1)
    assert await processes.two.take("ses_1") is None
    assert await processes.two.is_with_another("ses_1")
    processes.clocks["two"].move(0.2)
    assert not await processes.two.is_with_another("ses_1")
    taken = await held(processes.two)
    assert await processes.one.is_with_another("ses_1")
    assert taken.fence == 2


async def test_the_time_counts_from_the_last_change_that_was_seen(processes: Processes) -> None:
    first = await held(processes.one)
    assert await processes.two.is_with_another("ses_1")
    processes.clocks["two"].move(LEASE_S - 1)
    async with first:
        await processes.clocks["one"].until_asleep()
        processes.clocks["one"].move(LEASE_S / 2)

        async def renewed() -> bool:
            lease = await processes.store.lease("ses_1")
            return lease is not None and lease.renewals == 1

        await eventually(renewed, what="the holder renews")
        processes.clocks["two"].move(2)
        assert await processes.two.is_with_another("ses_1")  # seen anew
        processes.clocks["two"].move(LEASE_S - 1)
        assert await processes.two.is_with_another("ses_1")
        processes.clocks["two"].move(2)
        assert not await processes.two.is_with_another("ses_1")


async def test_a_dead_process_s_lease_is_free_at_once(processes: Processes) -> None:
    await held(processes.one)
    assert await processes.two.is_with_another("ses_1")
    processes.dead.add("one")
    assert not await processes.two.is_with_another("ses_1")
    assert await processes.two.take("ses_1") is not None


async def test_a_lease_given_back_is_free_and_one_s_own_is_too(processes: Processes) -> None:
    assert not await processes.one.is_with_another("ses_1")
    async with await held(processes.one):
        assert not await processes.one.is_with_another("ses_1")
        assert await processes.two.is_with_another("ses_1")
    assert not await processes.two.is_with_another("ses_1")
    async with await held(processes.two):
        assert await processes.one.take("ses_1") is None


async def test_no_request_may_take_longer_than_the_lease_still_holds(processes: Processes) -> None:
    clock = processes.clocks["one"]
    lease = await held(processes.one)
    assert lease.left_s() == LEASE_S
    clock.move(LEASE_S - 1)
    assert lease.left_s() == pytest.approx(1)
    clock.move(1)
    with pytest.raises(LeaseLostError):
        lease.left_s()


async def test_a_lease_that_is_renewed_holds_and_one_that_is_not_runs_out(
    processes: Processes,
) -> None:
    clock = processes.clocks["one"]
    async with AsyncExitStack() as stack:
        lease = await stack.enter_async_context(await held(processes.one))
        for _ in range(5):
            await clock.until_asleep()
            clock.move(LEASE_S / 2)

            async def renewed() -> bool:
                return lease.left_s() == LEASE_S

            await eventually(renewed, what="the lease is renewed")
        with closing(sqlite3.connect(processes.path)) as other, other:
            other.execute("UPDATE leases SET holder = 'two', fence = fence + 1")
        await clock.until_asleep()
        clock.move(LEASE_S / 2)

        async def lost() -> bool:
            try:
                lease.left_s()
            except LeaseLostError:
                return True
            return False

        await eventually(lost, what="the loss is noticed at the next renewal")
    assert not await processes.two.is_with_another("ses_1")  # leaving frees nothing of another's
    left = await processes.store.lease("ses_1")
    assert left is not None
    assert left.holder == "two"


async def test_two_that_see_a_lease_run_out_at_once_do_not_both_take_it(
    processes: Processes,
) -> None:
    three = Leases(
        store=processes.store,
        clock=processes.clocks["two"],
        holder="three",
        is_dead=lambda _: False,
    )
    await held(processes.one)
    for leases in (processes.two, three):
        assert await leases.is_with_another("ses_1")
    processes.clocks["two"].move(LEASE_S)
    taken = await asyncio.gather(processes.two.take("ses_1"), three.take("ses_1"))
    assert sum(lease is not None for lease in taken) == 1

"""Reads that are shared: done once for all that wait, and never older than the call."""

from __future__ import annotations

import asyncio

import pytest

from opencode_mcp.engine.sharing import SharedReads
from opencode_mcp.log_events import concerning, current_ids


class Source:
    """Something that is read: its value changes, and a read takes as long as the test likes."""

    def __init__(self) -> None:
        self.value = 0
        self.reads = 0
        self.gate = asyncio.Event()

    async def read(self) -> int:
        self.reads += 1
        value = self.value
        await self.gate.wait()
        return value


async def _all_begun() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_call_gets_what_was_read_after_it_came() -> None:
    shared, source = SharedReads[int](), Source()
    early = asyncio.create_task(shared.get("a", source.read))
    await _all_begun()
    source.value = 1  # the first read has begun and does not see this
    late = [asyncio.create_task(shared.get("a", source.read)) for _ in range(50)]
    await _all_begun()
    source.gate.set()
    assert await early == 0
    assert await asyncio.gather(*late) == [1] * 50
    assert source.reads == 2


async def test_other_keys_do_not_wait() -> None:
    shared, slow, quick = SharedReads[int](), Source(), Source()
    held = asyncio.create_task(shared.get("a", slow.read))
    await _all_begun()
    quick.gate.set()
    assert await shared.get("b", quick.read) == 0
    held.cancel()
    await shared.close()


async def test_a_fault_reaches_all_that_waited_and_the_next_read_is_a_new_one() -> None:
    shared = SharedReads[int]()

    async def fail() -> int:
        msg = "no"
        raise RuntimeError(msg)

    found = await asyncio.gather(*(shared.get("a", fail) for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in found] == [RuntimeError] * 3
    source = Source()
    source.gate.set()
    assert await shared.get("a", source.read) == 0


async def test_a_cancelled_call_takes_the_read_from_nobody() -> None:
    shared, source = SharedReads[int](), Source()
    first = asyncio.create_task(shared.get("a", source.read))
    second = asyncio.create_task(shared.get("a", source.read))
    await _all_begun()
    first.cancel()
    source.gate.set()
    assert await second == 0
    with pytest.raises(asyncio.CancelledError):
        await first
    assert source.reads == 1


async def test_what_is_read_for_many_is_logged_for_none_of_them() -> None:
    shared = SharedReads[dict[str, object]]()

    async def read() -> dict[str, object]:
        return dict(current_ids())

    with concerning(call_id="1", owner="token:alice"):
        assert await shared.get("a", read) == {}


async def test_closing_stops_what_is_read_for_nobody() -> None:
    shared, source = SharedReads[int](), Source()
    waits = [asyncio.create_task(shared.get("a", source.read)) for _ in range(2)]
    await _all_begun()
    waits.append(asyncio.create_task(shared.get("a", source.read)))
    await _all_begun()
    await shared.close()
    assert all(
        isinstance(each, asyncio.CancelledError)
        for each in await asyncio.gather(*waits, return_exceptions=True)
    )

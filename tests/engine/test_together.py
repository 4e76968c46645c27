"""Several reads at once: none of them outlives the call."""

from __future__ import annotations

import asyncio

import pytest

from opencode_mcp.engine.together import together


class Endless:
    """Work that never ends by itself, and that takes its time to stop."""

    def __init__(self) -> None:
        self.is_under_way = asyncio.Event()
        self.is_over = False

    async def run(self) -> None:
        """Go on until it is cancelled."""
        self.is_under_way.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.is_over = True


async def _after(earlier: asyncio.Event, value: str) -> str:
    await earlier.wait()
    return value


async def test_each_answer_stands_where_its_work_stood() -> None:
    second_is_done = asyncio.Event()

    async def second() -> int:
        second_is_done.set()
        return 2

    assert await together(_after(second_is_done, "one"), second()) == ("one", 2)
    assert await together() == ()


async def test_when_one_fails_the_others_are_over_before_it_is_told() -> None:
    endless = Endless()

    async def fail() -> None:
        await endless.is_under_way.wait()
        message = "the first to fail"
        raise LookupError(message)

    with pytest.raises(LookupError, match="the first to fail"):
        await together(endless.run(), fail())
    assert endless.is_over


async def test_a_call_that_is_cancelled_leaves_nothing_running() -> None:
    works = [Endless(), Endless()]
    call = asyncio.ensure_future(together(*(work.run() for work in works)))
    for work in works:
        await work.is_under_way.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert all(work.is_over for work in works)

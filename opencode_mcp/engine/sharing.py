"""Reads that several calls want at the same moment, done once for all of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from opencode_mcp.log_events import only_concerning

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

T = TypeVar("T")


class SharedReads(Generic[T]):
    """Gives each call what was read after the call came, so that none sees older than alone.

    Of one key, one read runs and at most one waits for it to end; whoever comes meanwhile shares
    the one that waits.
    """

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[T]] = {}
        self._waiting: dict[Hashable, asyncio.Task[T]] = {}

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """Return what `read` returns, or raise what it raises. A cancelled call stops no read."""
        task = self._waiting.get(key)
        if task is None:
            with only_concerning():  # it is read for whoever shares it, not for this call alone
                task = asyncio.create_task(self._read(key, self._running.get(key), read))
            task.add_done_callback(_forget_fault)
            self._waiting[key] = task
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Stop what is still read for calls that are gone."""
        tasks = [*self._running.values(), *self._waiting.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(
        self, key: Hashable, before: asyncio.Task[T] | None, read: Callable[[], Awaitable[T]]
    ) -> T:
        if before is not None:
            await asyncio.wait({before})
        task = self._waiting.pop(key)
        self._running[key] = task
        try:
            return await read()
        finally:
            if self._running.get(key) is task:
                del self._running[key]


def _forget_fault(task: asyncio.Task[T]) -> None:
    if not task.cancelled():
        task.exception()  # if all its calls were cancelled, nobody asks, and asyncio would complain

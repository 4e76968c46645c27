"""Work that goes on beside the program, until that is closed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine


@asynccontextmanager
async def in_background(*works: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Do `works` until the block is left; then they are cancelled and waited for."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

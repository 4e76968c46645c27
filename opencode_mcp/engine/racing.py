"""Do something until something else happens."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


async def unless(
    work: Coroutine[object, object, T], interruption: Coroutine[object, object, object]
) -> T | None:
    """Do `work`, and give it up once `interruption` is done; None: given up.

    Neither outlives the call, also when that is cancelled. Raises what `work` raises.
    """
    working = asyncio.ensure_future(work)
    interrupting = asyncio.ensure_future(interruption)
    try:
        await asyncio.wait({working, interrupting}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        interrupting.cancel()
        await asyncio.gather(working, interrupting, return_exceptions=True)

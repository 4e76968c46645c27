"""Read several things at once, and leave none of it running when one of them fails.

For reads: of several changes (aborts, say) one must not be given up for another's fault.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Coroutine

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


@overload
async def together(
    first: Coroutine[object, object, A], second: Coroutine[object, object, B], /
) -> tuple[A, B]: ...


@overload
async def together(
    first: Coroutine[object, object, A],
    second: Coroutine[object, object, B],
    third: Coroutine[object, object, C],
    /,
) -> tuple[A, B, C]: ...


@overload
async def together(*works: Coroutine[object, object, A]) -> tuple[A, ...]: ...


async def together(*works: Coroutine[object, object, object]) -> tuple[object, ...]:
    """Do `works` at once and return what each returns, in their order.

    Raises what the first to fail raises. `asyncio.gather` would leave the others running then,
    and an `asyncio.TaskGroup` would raise a group; here they are cancelled and waited for first,
    also when the call itself is cancelled. (Do not nest it: a call that is cancelled before it
    begins has made no tasks of `works` yet, and nobody would await them.)
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return tuple(await asyncio.gather(*tasks))
    finally:
        if left := [task for task in tasks if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left)

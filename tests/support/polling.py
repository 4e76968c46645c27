"""Waiting for something outside of this process: bounded, and never a bare sleep."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Check: TypeAlias = Callable[[], Awaitable[T]]

#: How long something that must happen may take. Long, since a loaded machine may be ten times
#: slower than a free one; it costs nothing while all is well.
PATIENCE_S = 45.0
_PAUSE_S = 0.05
#: each look costs the machine something
_STEADY_PAUSE_S = 0.2


async def eventually(check: Check[T], *, what: str, within_s: float = PATIENCE_S) -> T:
    """Ask until the answer is true and return it; fail after `within_s`, naming `what`."""
    deadline = time.monotonic() + within_s
    while True:
        found = await check()
        if found:
            return found
        if time.monotonic() > deadline:
            message = f"not within {within_s} s: {what} (last answer: {found!r})"
            raise AssertionError(message)
        await asyncio.sleep(_PAUSE_S)


async def steadily(check: Check[object], *, for_s: float, what: str) -> None:
    """Ask again and again for `for_s` and fail as soon as the answer is not true.

    For things that must *not* begin later: nothing announces their absence.
    """
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        found = await check()
        if not found:
            message = f"no longer true: {what} (answer: {found!r})"
            raise AssertionError(message)
        await asyncio.sleep(_STEADY_PAUSE_S)

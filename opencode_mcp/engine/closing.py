"""That this process is about to exit: who is told, and by when what must be done (contract §4).

`docker stop` kills 10 s after it asked. So whoever watches is answered with what is known, short
calls may finish, and what then is not done stays a recorded intent for the next start.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from opencode_mcp.engine.racing import unless
from opencode_mcp.errors import ShuttingDownError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from opencode_mcp.clock import Clock

T = TypeVar("T")

# All in seconds from the beginning of the exit.
#: a call that stops or ends something is answered with what is known by then
CHANGED_BY_S = 2.0
#: every call is answered by then
ANSWERED_BY_S = 2.5
#: the answers are written, and nobody waits for one any more
WRITTEN_BY_S = 3.0
#: what is to become of the turns (`ON_EXIT`) is done, or is left to the next start
TURNS_BY_S = 7.0
#: whatever hangs, the process ends itself; on a busy machine that takes some moments, and it is to
#: be gone after 9 s
GONE_BY_S = 8.0


class Closing:
    """The exit of one process. It begins once and is never taken back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun = asyncio.Event()
        self._began_at = 0.0
        self._refuses = False

    @property
    def is_begun(self) -> bool:
        """Whether this process is about to exit."""
        return self._begun.is_set()

    def begin(self, *, refuse: bool) -> None:
        """Tell everybody; with `refuse` no new work is taken from now on. May be repeated.

        Without it, what was asked for before is still begun: the input has ended, so nothing new
        can come, but its last requests are only now on their way.
        """
        if not self.is_begun:
            self._began_at = self._clock.monotonic()
            self._begun.set()
        self._refuses |= refuse

    def check_open(self) -> None:
        """Raise ShuttingDownError if no new work is taken."""
        if self._refuses:
            msg = "this server is shutting down: call again after its restart"
            raise ShuttingDownError(msg)

    def left_s(self, by_s: float) -> float:
        """Return the seconds until `by_s` after the beginning; never less than 0."""
        since_s = self._clock.monotonic() - self._began_at if self.is_begun else 0.0
        return max(0.0, by_s - since_s)

    async def wait(self) -> None:
        """Wait until it begins."""
        await self._begun.wait()

    async def until(self, work: Coroutine[object, object, T], by_s: float = 0.0) -> T | None:
        """Do `work`; give it up, and return None, `by_s` seconds after the exit has begun."""
        return await unless(work, self._passed(by_s))

    async def _passed(self, by_s: float) -> None:
        await self._begun.wait()
        await self._clock.sleep(self.left_s(by_s))

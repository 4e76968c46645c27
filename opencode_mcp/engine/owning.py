"""Which call owns a turn: it is not left half begun, and who cancels the call may stop the turn."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from opencode_mcp.engine.overview import View
from opencode_mcp.records import StopReason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from opencode_mcp.engine.closing import Closing
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.keepers import Keepers
    from opencode_mcp.engine.repeating import Repeats
    from opencode_mcp.engine.requests import RepeatableCall
    from opencode_mcp.records import RequestClaim


class Owning:
    """Begins turns for calls, and knows what a cancelled call means for its turn."""

    def __init__(
        self, *, keepers: Keepers, repeats: Repeats, closing: Closing, abort_on_call_cancel: bool
    ) -> None:
        self._keepers = keepers
        self._repeats = repeats
        self._closing = closing
        self._aborts = abort_on_call_cancel

    async def begin(
        self, beginning: Coroutine[object, object, Keeper], call: RepeatableCall | None = None
    ) -> Keeper:
        """Begin a turn so that a cancelled call cannot leave it half begun.

        If the call is cancelled meanwhile, the turn is stopped once it has begun; at the exit of
        this process its own rule decides about it.
        """
        task = self._keepers.begin(beginning)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(partial(self._begun_too_late, call))
            raise

    async def once(
        self, call: RepeatableCall, begin: Callable[[RequestClaim], Awaitable[Keeper]]
    ) -> View:
        """Begin the turn of a call with a request-id, or join the one that it began before."""
        try:
            claim = await self._repeats.claim(call)
            if claim.call != call.token:
                return await self._repeats.join(claim)
        except asyncio.CancelledError:
            self.left(self._repeats.joined(call), call)
            raise
        beginning = self._repeats.begun(call, claim, partial(begin, claim))
        keeper = await self.begin(beginning, call)
        return View(keeper.session, keeper.turn, keeper.verdict, keeper=keeper)

    def call_cancelled(self, keeper: Keeper, call: RepeatableCall | None) -> None:
        """Tell that the client cancelled the call that owns this turn."""
        if self._aborts:
            self._keepers.spawn(self._stop(keeper, call))

    def left(
        self, looking: Coroutine[object, object, Keeper | None], call: RepeatableCall | None
    ) -> None:
        """Tell that the client cancelled a call before it watched its turn; `looking` finds it."""
        self._keepers.spawn(self._left(looking, call))

    async def _stop(self, keeper: Keeper, call: RepeatableCall | None) -> None:
        if call is None or not await self._repeats.is_superseded(call, keeper):
            await keeper.ask_to_stop(StopReason.CANCEL)

    async def _left(
        self, looking: Coroutine[object, object, Keeper | None], call: RepeatableCall | None
    ) -> None:
        keeper = await looking
        if keeper is not None and not self._closing.is_begun:
            self.call_cancelled(keeper, call)

    def _begun_too_late(self, call: RepeatableCall | None, task: asyncio.Task[Keeper]) -> None:
        if not task.cancelled() and task.exception() is None and not self._closing.is_begun:
            self.call_cancelled(task.result(), call)

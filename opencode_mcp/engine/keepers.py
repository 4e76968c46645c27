"""The running turns of this process: one keeper each, and the tasks that run them."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Self, TypeVar

from opencode_mcp.records import StopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.outcome import Verdict
    from opencode_mcp.opencode.events import Watch

T = TypeVar("T")

#: how long leaving may take to stop the turns that run
STOP_AT_EXIT_S = 6.0
#: so many finished turns are remembered, so that the end of a session need not read them again
_REMEMBERED = 1000


class Keepers:
    """Holds the keepers by session id, and owns every background task of the engine."""

    def __init__(self, *, loop_limit: int) -> None:
        """`loop_limit`: see `Keeper.run`."""
        self._loop_limit = loop_limit
        self._keepers: dict[str, Keeper] = {}
        self._tasks: set[asyncio.Task[object]] = set()

    async def __aenter__(self) -> Self:
        """Nothing runs yet."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop the turns that still run, bounded; then cancel what is left."""
        running = [k for k in self._keepers.values() if not k.verdict.is_over]
        for keeper in running:
            self.spawn(keeper.ask_to_stop(StopReason.CANCEL))
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_AT_EXIT_S if running else 0.0)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def get(self, session_id: str) -> Keeper | None:
        """Return the keeper of the session's newest turn, if this process runs or ran it."""
        return self._keepers.get(session_id)

    def forget(self, session_id: str, verdict: Verdict) -> None:
        """Let go of a session that ended; calls that still watch get `verdict`."""
        keeper = self._keepers.pop(session_id, None)
        if keeper is not None:
            keeper.close_as(verdict)

    @contextmanager
    def beginning(self, keeper: Keeper) -> Iterator[Callable[[], None]]:
        """Subscribe before the prompt is sent; call the yielded function to observe its turn."""
        with ExitStack() as stack:
            watch = stack.enter_context(keeper.connection.events.watch(keeper.session.id))

            def observe() -> None:
                self._keepers.pop(keeper.session.id, None)
                self._keepers[keeper.session.id] = keeper
                self._trim()
                self.spawn(_run(keeper, watch, stack.pop_all(), self._loop_limit))

            yield observe

    def adopt(self, keeper: Keeper) -> Keeper:
        """Observe a turn that another process began, unless it is observed here already."""
        known = self._keepers.get(keeper.session.id)
        if known is not None and known.turn.number >= keeper.turn.number:
            return known
        with self.beginning(keeper) as observe:
            observe()
        return keeper

    def spawn(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Run `work` as a task that this object owns."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _trim(self) -> None:
        over = [i for i, k in self._keepers.items() if k.verdict.is_over]
        for session_id in over[: max(0, len(self._keepers) - _REMEMBERED)]:
            del self._keepers[session_id]


async def _run(keeper: Keeper, watch: Watch, stack: ExitStack, loop_limit: int) -> Verdict:
    with stack:
        return await keeper.run(watch, loop_limit=loop_limit)

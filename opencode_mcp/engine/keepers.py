"""The running turns of this process: one keeper each, and the tasks that run them."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from opencode_mcp.engine import telling
from opencode_mcp.engine.keeper import Keeper
from opencode_mcp.errors import ShuttingDownError, StaleSessionError
from opencode_mcp.log_events import only_concerning

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.instances import Connection, Instances
    from opencode_mcp.engine.outcome import Verdict
    from opencode_mcp.opencode.watch import Watch
    from opencode_mcp.records import Session, Turn
    from opencode_mcp.store.store import Store

T = TypeVar("T")

#: so many finished turns are remembered, so that the end of a session need not read them again
_REMEMBERED = 1000


class Keepers:
    """Holds the keepers by session id, and owns every background task of the engine."""

    def __init__(  # noqa: PLR0913 - the parts it works with, all by keyword
        self,
        *,
        store: Store,
        instances: Instances,
        clock: Clock,
        holder: str,
        is_dead_holder: Callable[[str], bool],
        approval_timeout_s: float,
        loop_limit: int,
    ) -> None:
        #: this process, as turns and leases name it
        self.holder = holder
        self.is_dead_holder = is_dead_holder
        self._store = store
        self._instances = instances
        self._clock = clock
        self._approval_timeout_s = approval_timeout_s
        self._loop_limit = loop_limit
        self._keepers: dict[str, Keeper] = {}
        self._submitting: Counter[str] = Counter()
        self._is_closed = False
        self._beginnings: set[asyncio.Task[Keeper]] = set()
        self._tasks: set[asyncio.Task[object]] = set()
        #: tasks that leaving gives time to finish; what is not done then is a recorded intent
        self._awaited: set[asyncio.Task[object]] = set()

    @property
    def beginnings(self) -> set[asyncio.Task[Keeper]]:
        """The turns that are being begun now."""
        return set(self._beginnings)

    def running(self) -> list[Keeper]:
        """Return the keepers of the turns that run."""
        return [keeper for keeper in self._keepers.values() if not keeper.verdict.is_over]

    def close(self) -> set[str]:
        """Let no further prompt be sent; return the sessions where one is on its way."""
        self._is_closed = True
        return set(self._submitting)

    async def finish(self, timeout_s: float) -> None:
        """Wait, at most `timeout_s`, for the tasks that are to finish before this process exits."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._awaited:  # some begin others
                    await asyncio.wait(self._awaited)

    async def cancel(self) -> None:
        """Cancel what still runs; what it was at is a recorded intent."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def make(self, connection: Connection, session: Session, turn: Turn) -> Keeper:
        """Return a keeper for the turn that nothing runs yet."""
        return Keeper(
            connection,
            session,
            turn,
            store=self._store,
            instances=self._instances,
            clock=self._clock,
            is_owned=turn.holder == self.holder,
            approval_timeout_s=self._approval_timeout_s,
            loop_limit=self._loop_limit,
        )

    def get(self, session_id: str) -> Keeper | None:
        """Return the keeper of the session's newest turn, if this process runs or ran it."""
        return self._keepers.get(session_id)

    def learn(self, turn: Turn) -> None:
        """Let whoever observes the turn here know what was written down about it."""
        keeper = self._keepers.get(turn.session_id)
        if keeper is not None and keeper.turn.number == turn.number:
            keeper.learn(turn)

    def forget(self, session_id: str, verdict: Verdict) -> None:
        """Let go of a session that ended; calls that still watch get `verdict`."""
        keeper = self._keepers.pop(session_id, None)
        if keeper is not None:
            keeper.close_as(verdict)

    @contextmanager
    def submitting(self, session_id: str) -> Iterator[None]:
        """Mark the session: a turn of it is recorded, and its prompt sent, while the block runs.

        Raises ShuttingDownError once this process parts with its turns.
        """
        if self._is_closed:
            msg = "this server is shutting down and did not send the prompt"
            raise ShuttingDownError(msg, session_id=session_id)
        self._submitting[session_id] += 1
        try:
            yield
        finally:
            self._submitting[session_id] -= 1
            if not self._submitting[session_id]:
                del self._submitting[session_id]

    def is_submitting(self, session_id: str) -> bool:
        """Whether a prompt is on its way: nobody else takes its turn up."""
        return session_id in self._submitting

    @contextmanager
    def beginning(self, keeper: Keeper) -> Iterator[Callable[[], None]]:
        """Subscribe before the prompt is sent; call the yielded function to observe its turn."""
        with ExitStack() as stack:
            watch = stack.enter_context(keeper.connection.events.watch(keeper.session.id))

            def observe() -> None:
                self._keepers.pop(keeper.session.id, None)
                self._keepers[keeper.session.id] = keeper
                self._trim()
                self.spawn(_run(keeper, watch, stack.pop_all()))

            yield observe

    def begin(self, beginning: Coroutine[object, object, Keeper]) -> asyncio.Task[Keeper]:
        """Begin a turn as a task that goes on whoever waits for it."""
        task = self.spawn(beginning)
        self._beginnings.add(task)
        task.add_done_callback(self._beginnings.discard)
        return task

    async def take_up(self, keeper: Keeper) -> Keeper:
        """Observe a turn from here on, unless it is observed here already; return its keeper.

        If the process that kept it is dead, this one answers for it now.
        """
        turn = keeper.turn
        if turn.holder is None or self.is_dead_holder(turn.holder):
            with suppress(StaleSessionError):  # its session has just ended
                keeper.observer.turn = await self._store.hold_turn(turn, self.holder)
                keeper.is_owned = True
        known = self._keepers.get(keeper.session.id)
        if known is not None and known.turn.number >= keeper.turn.number:
            known.is_owned |= keeper.is_owned
            known.learn(keeper.turn)
            return known
        with self.beginning(keeper) as observe:
            observe()
        return keeper

    def spawn(
        self, work: Coroutine[object, object, T], *, finish_at_exit: bool = False
    ) -> asyncio.Task[T]:
        """Run `work` as a task that this object owns."""
        task = asyncio.ensure_future(work)
        for tasks in (self._tasks, self._awaited) if finish_at_exit else (self._tasks,):
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        return task

    def _trim(self) -> None:
        over = [i for i, k in self._keepers.items() if k.verdict.is_over]
        for session_id in over[: max(0, len(self._keepers) - _REMEMBERED)]:
            del self._keepers[session_id]


async def _run(keeper: Keeper, watch: Watch, stack: ExitStack) -> None:
    with stack, only_concerning(**telling.ids_of(keeper.session, keeper.turn)):
        verdict = await keeper.run(watch)
        if keeper.is_owned:  # else its own process tells
            telling.turn_over(keeper.session, keeper.turn, verdict, keeper.elapsed_s)
        await keeper.cross_out()

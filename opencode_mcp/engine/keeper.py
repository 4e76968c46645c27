"""Keep one running turn: observe it until it is over, and stop it when it is to stop.

A turn is a durable row plus an observer that anyone can start again. The keeper runs that
observer: one task for each turn that this process keeps, however many calls watch it and whether
any does. Events only wake it; reads decide.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from opencode_mcp.engine import telling
from opencode_mcp.engine.approvals import Approvals
from opencode_mcp.engine.budget import BudgetSpentError
from opencode_mcp.engine.halting import Halt
from opencode_mcp.engine.observing import UNCLEAR_POLL_S, Observer
from opencode_mcp.engine.outcome import TurnStatus, Verdict
from opencode_mcp.engine.quarantine import free_if_settled
from opencode_mcp.engine.racing import unless
from opencode_mcp.engine.trouble import TROUBLE_PAUSE_S, met_again, passed
from opencode_mcp.errors import InstanceUnreachableError, StaleSessionError, StoreError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.log_events import Event, tell
from opencode_mcp.opencode_errors import OpencodeError
from opencode_mcp.records import StopReason

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.instances import Connection, Instances
    from opencode_mcp.engine.trouble import Trouble
    from opencode_mcp.opencode.watch import Watch
    from opencode_mcp.records import Session, Turn
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)

T = TypeVar("T")

#: how often a turn is read although no event came: a lost event costs at most this
POLL_S = 5.0
#: what may pass: OpenCode or the database cannot be asked now
_TROUBLES = (OpencodeError, InstanceUnreachableError, StoreError)


class Keeper:
    """One turn and its observer. `run` is its task; any number of calls wait on `changed`."""

    def __init__(  # noqa: PLR0913 - the turn, and the parts that its keeper works with
        self,
        connection: Connection,
        session: Session,
        turn: Turn,
        *,
        store: Store,
        instances: Instances,
        clock: Clock,
        is_owned: bool,
        approval_timeout_s: float,
        loop_limit: int,
    ) -> None:
        """`loop_limit`: a turn of so many steps without progress is stopped; 0: never."""
        ids = telling.ids_of(session, turn)
        self.approvals = Approvals(session.approval_policy, clock, approval_timeout_s, ids)
        self.observer = Observer(
            connection, session, turn, store=store, clock=clock, approvals=self.approvals
        )
        #: this process answers for the turn: it stops it when it exits
        self.is_owned = is_owned
        self.verdict = Verdict(TurnStatus.RUNNING)
        #: None: the last read went well
        self.trouble: Trouble | None = None
        self.halt = Halt(self.observer, clock=clock, announce=self._announce)
        self._store = store
        self._instances = instances
        self._clock = clock
        self._loop_limit = loop_limit
        #: a caller of this process wants it stopped
        self._is_asked = False
        #: set once the turn is over and that was written down, or could not be
        self.crossed_out = asyncio.Event()
        self._changed = asyncio.Event()
        self._poke = asyncio.Event()
        limit_s = (turn.deadline_at - turn.created_at).total_seconds()
        left_s = (turn.deadline_at - clock.now()).total_seconds()
        # a clock that jumped must not give a turn more time than its own limit
        self._deadline = clock.monotonic() + min(left_s, limit_s)
        self._began = self._deadline - limit_s

    @property
    def connection(self) -> Connection:
        """The instance that runs the session."""
        return self.observer.connection

    @property
    def session(self) -> Session:
        """The session as it was when the turn began, or was taken over."""
        return self.observer.session

    @property
    def watch(self) -> Watch | None:
        """What events tell of the turn, while it is observed."""
        return self.observer.watch

    @property
    def turn(self) -> Turn:
        """The turn as it was last read from the store."""
        return self.observer.turn

    @property
    def elapsed_s(self) -> float:
        """Seconds since the turn was submitted."""
        return self._clock.monotonic() - self._began

    async def changed(self, timeout_s: float) -> bool:
        """Wait until there is news, at most `timeout_s`; whether there is."""
        event = self._changed
        try:
            await asyncio.wait_for(event.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    async def ask_to_stop(self, reason: StopReason) -> None:
        """Record that the turn is to stop, and stop it. The first reason stays."""
        if self.verdict.is_over:
            return
        self._is_asked = True
        self.learn(await self._to_stop(reason))

    def learn(self, turn: Turn) -> None:
        """Take over what was written down about the turn; a wish to stop it stays."""
        if turn.stop_reason is None and self.turn.stop_reason is not None:  # read before the wish
            return
        news = turn.stop_reason is not self.turn.stop_reason
        self.observer.turn = turn
        if news and not self.verdict.is_over:
            self._poke.set()

    def close_as(self, verdict: Verdict) -> None:
        """End the watch: the session was ended, so there is nothing left to read."""
        self._publish(verdict)

    async def run(self, watch: Watch) -> Verdict:
        """Observe until the turn is over. `watch` was begun before the prompt was sent.

        While events come, the first read waits for one: a short turn costs one read.
        """
        self.observer.watch = watch
        if self.connection.events.spoken and not self.observer.seen:
            await self._wait(POLL_S)
        while not self.verdict.is_over:
            try:
                await self._step()
            except (*_TROUBLES, BudgetSpentError) as error:
                await self._sit_out(error)
            else:
                passed(self.trouble, self._clock, self.session, self.turn)
                self.trouble = None
        self.observer.history.forget()
        return self.verdict

    async def cross_out(self) -> None:
        """Write down that the turn is over; then guard it, should it begin after all."""
        try:
            self.observer.turn = await self._store.finish_turn(self.turn)
        except StoreError:  # its session has ended, or the finisher finds it again
            tell(log, Event.TURN_NOT_CROSSED_OUT)
        self.crossed_out.set()
        await self.halt.guard()

    async def refresh(self) -> Verdict:
        """Look now, for somebody who asks; what is found is the keeper's too."""
        self._publish(await self.observer.look())
        return self.verdict

    async def _step(self) -> None:
        verdict = await self._unless_poked(self.observer.look())
        self._poke.clear()
        if verdict is not None:
            self._publish(verdict)
        if self.is_owned:
            self.approvals.tell_news()
        if self.session.phase is Phase.QUARANTINED and self.observer.seen:
            await free_if_settled(self._store, self.observer, moved=False)
        if self.verdict.is_over:
            return
        reason = self._reason_to_stop()
        if reason is not None and self.turn.stop_reason is None:
            self.learn(await self._to_stop(reason))
        if self._is_to_stop_it() and not self.observer.proven_over:
            await self.halt.carry_out()
            tell(log, Event.STOP_CONFIRMED)
            return
        left_s = self._deadline - self._clock.monotonic()
        if self.turn.stop_reason is None and self.is_owned:
            if await self._unless_poked(self.approvals.reject_due(self.connection.client)):
                return
            left_s = min(left_s, self.approvals.left_s())
        left_s = max(left_s, UNCLEAR_POLL_S)
        soon = self.observer.is_unclear and self.observer.settles_by_waiting
        poll_s = UNCLEAR_POLL_S if soon else POLL_S
        await self._wait(min(poll_s, left_s))

    def _is_to_stop_it(self) -> bool:
        """Whether we have to stop the turn.

        Who merely observes another process's turn leaves that to it, unless it was asked here. The
        turn of a session that ends is stopped by its end.
        """
        wanted = self.turn.stop_reason not in {None, StopReason.END}
        return wanted and (self.is_owned or self._is_asked)

    async def _to_stop(self, reason: StopReason) -> Turn:
        """Record why the turn stops; one whose session has ended is stopped all the same."""
        known = self.turn.stop_reason
        try:
            turn = await self._store.set_stop_reason(self.turn, reason)
        except StaleSessionError:
            turn = replace(self.turn, stop_reason=reason)
        if known is None and turn.stop_reason is reason:
            telling.stop_asked(self.session, turn, reason)
        return turn

    def _reason_to_stop(self) -> StopReason | None:
        """Return why the turn must not go on, whoever watches it: too long, or in circles."""
        if not self.is_owned:
            return None
        if self._clock.monotonic() >= self._deadline:
            return StopReason.TIMEOUT
        running = self.verdict.status is TurnStatus.RUNNING
        if running and self.observer.history.find_loop(self._loop_limit):
            return StopReason.LOOP
        return None

    async def _sit_out(self, error: Exception) -> None:
        """Note why OpenCode cannot be asked, wait, and follow the session if its instance died."""
        self.trouble = met_again(self.trouble, error, self._clock, self.session, self.turn)
        self._announce()
        await self._wait(TROUBLE_PAUSE_S)
        await self._follow_the_session()

    async def _follow_the_session(self) -> None:
        """Go on in the instance that carries the session on, once its own is proven dead."""
        try:
            reached = await self._instances.of(self.session)
        except _TROUBLES:
            return
        if reached.connection is not self.connection:
            self.observer.connection, self.observer.session = reached.connection, reached.session
            self.observer.proven_over = True  # nothing of it runs any more (facts 9.1)

    async def _unless_poked(self, work: Coroutine[object, object, T]) -> T | None:
        """Do `work`, unless a stop is asked for meanwhile: OpenCode may hang, the stop must not."""
        return await unless(work, self._poke.wait())

    async def _wait(self, seconds: float) -> None:
        """Wait for an event, a request of ours, or `seconds`."""
        assert self.watch is not None  # noqa: S101 - set by `run`, the only caller
        await self._unless_poked(self.watch.wait(seconds))

    def _publish(self, verdict: Verdict) -> None:
        if self.verdict.is_over:
            return
        news = (verdict.status, verdict.pending) != (self.verdict.status, self.verdict.pending)
        self.verdict = verdict
        if news:
            self._announce()
        if verdict.is_over:
            self._poke.set()

    def _announce(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

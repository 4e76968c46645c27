"""Keep one running turn: observe it until it is over, and stop it when its time is up.

A turn is a durable row plus an observer that anyone can start again. The keeper is that observer:
one task for each turn that this process runs, however many calls watch it and whether any does.
Events only wake it; reads decide.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from opencode_mcp.engine.approvals import Approvals
from opencode_mcp.engine.budget import Budget, BudgetSpentError
from opencode_mcp.engine.outcome import Evidence, TurnStatus, Verdict, judge
from opencode_mcp.engine.reading import read_asks, read_tree, read_turn
from opencode_mcp.engine.stopping import Stopped, make_quiet, wait_until_seen
from opencode_mcp.errors import (
    InstanceUnreachableError,
    OpencodeError,
    OpencodeNotFoundError,
    StoreError,
)
from opencode_mcp.records import StopReason

if TYPE_CHECKING:
    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.instances import Connection, Instances
    from opencode_mcp.opencode.events import Watch
    from opencode_mcp.records import Session, Turn
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)

#: how often a turn is read although no event came: a lost event costs at most this
POLL_S = 5.0
#: how often while the evidence is not clear yet (idle without an end: facts 3.8, 9.2)
UNCLEAR_POLL_S = 0.1
#: idle for so long without a terminal message: nothing more will come
SETTLE_S = 2.0
#: the same, while the prompt itself is not visible: 1.3 s was seen for 3.4 MB (facts 4.6)
SETTLE_UNSEEN_S = 10.0
#: how long to wait while OpenCode cannot be asked; an event wakes earlier
TROUBLE_PAUSE_S = 1.0
#: how long one attempt to stop a turn may take: a process that ignores TERM takes 3 s (facts 4.2)
STOP_S = 15.0


class Keeper:
    """The observer of one turn. `run` is its task; any number of calls wait on `changed`."""

    def __init__(  # noqa: PLR0913 - the turn, and the parts that its keeper works with
        self,
        connection: Connection,
        session: Session,
        turn: Turn,
        *,
        store: Store,
        instances: Instances,
        clock: Clock,
        approval_timeout_s: float,
    ) -> None:
        self.session = session
        self.turn = turn
        self.connection = connection
        self._instances = instances
        self.approvals = Approvals(session.approval_policy, clock, approval_timeout_s)
        self.verdict = Verdict(TurnStatus.RUNNING)
        self.watch: Watch | None = None
        #: why the last read failed, while OpenCode cannot be asked
        self.trouble: str | None = None
        self._store = store
        self._clock = clock
        self._idle_since: float | None = None
        self._is_stopped = False
        self._changed = asyncio.Event()
        self._poke = asyncio.Event()
        deadline_s = (turn.deadline_at - clock.now()).total_seconds()
        limit_s = (turn.deadline_at - turn.created_at).total_seconds()
        # a clock that jumped must not give a turn more time than its own limit
        self._deadline = clock.monotonic() + min(deadline_s, limit_s)

    async def changed(self, timeout_s: float) -> bool:
        """Wait until the verdict changed, at most `timeout_s`; whether it did."""
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
        self.turn = await self._store.set_stop_reason(self.turn, reason)
        self._poke.set()

    def close_as(self, verdict: Verdict) -> None:
        """End the watch: the session was ended, so there is nothing left to read."""
        self._publish(verdict)

    async def run(self, watch: Watch) -> Verdict:
        """Observe until the turn is over. `watch` was begun before the prompt was sent.

        While events come, the first read waits for one: a short turn costs one read.
        """
        self.watch = watch
        if self.connection.events.spoken:
            await self._wait(POLL_S)
        while not self.verdict.is_over:
            try:
                await self._step()
            except (OpencodeError, StoreError, BudgetSpentError) as error:
                self.trouble = str(error) or type(error).__name__
                log.warning(
                    "turn cannot be observed now",
                    extra={"session_id": self.session.id, "why": self.trouble},
                )
                await self._wait(TROUBLE_PAUSE_S)
                await self._follow_the_session()
            else:
                self.trouble = None
        return self.verdict

    async def refresh(self) -> Verdict:
        """Look now, for somebody who asks; what is found is the keeper's too."""
        self._publish(await self.look())
        return self.verdict

    async def _follow_the_session(self) -> None:
        """Go on in the instance that carries the session on, once its own is proven dead."""
        try:
            reached = await self._instances.of(self.session)
        except (OpencodeError, InstanceUnreachableError, StoreError) as error:
            self.trouble = str(error)
            return
        if reached.connection is not self.connection:
            self.connection, self.session = reached.connection, reached.session
            self._is_stopped = True  # nothing of it runs any more (facts 9.1)

    async def _step(self) -> None:
        verdict = await self.look()
        if verdict.is_over:
            self._publish(verdict)
            return
        if self._clock.monotonic() >= self._deadline and self.turn.stop_reason is None:
            self.turn = await self._store.set_stop_reason(self.turn, StopReason.TIMEOUT)
        self._publish(verdict)
        if self.turn.stop_reason is not None and not self._is_stopped:
            await self._stop()
            return
        if self.turn.stop_reason is None and await self.approvals.reject_due(
            self.connection.client
        ):
            return
        unclear = self._idle_since is not None
        left_s = min(self._deadline - self._clock.monotonic(), self.approvals.left_s())
        left_s = max(left_s, UNCLEAR_POLL_S)
        await self._wait(min(UNCLEAR_POLL_S if unclear else POLL_S, left_s))

    async def look(self) -> Verdict:
        """Read what is known now, and judge it."""
        client, session = self.connection.client, self.session
        try:
            statuses, messages = await asyncio.gather(
                client.statuses(session.directory), read_turn(client, self.turn)
            )
        except OpencodeNotFoundError:
            return await self._session_is_gone()
        status = statuses.get(session.id)
        if status is not None:
            self._idle_since = None
            self._is_stopped = False  # a stopped session that turns busy is stopped again
            tree = await read_tree(client, session, timeout_s=None)
            self.approvals.saw((await read_asks(client, tree, timeout_s=None)).all, tree)
        else:
            self.approvals.saw_none()
        evidence = Evidence(
            messages=messages,
            status=status,
            pending=self.approvals.asks,
            stop_reason=self.turn.stop_reason,
            settled=status is None and self._settled(seen=bool(messages)),
        )
        return self.approvals.annotated(judge(evidence))

    async def look_until_clear(self, *, gone_settles: bool) -> Verdict:
        """Judge the turn once, from outside: by somebody who has not observed it.

        Idle without an end is looked at again until it is settled, bounded by the settle time.
        `gone_settles`: its instance is proven dead, so nothing more will come.
        """
        if gone_settles:
            self._is_stopped = True
        while True:
            verdict = await self.look()
            if verdict.is_over or self._idle_since is None:
                return verdict
            await self._clock.sleep(UNCLEAR_POLL_S)

    def _settled(self, *, seen: bool) -> bool:
        now = self._clock.monotonic()
        if self._idle_since is None:
            self._idle_since = now
        if self._is_stopped:
            return True
        return now - self._idle_since >= (SETTLE_S if seen else SETTLE_UNSEEN_S)

    async def _session_is_gone(self) -> Verdict:
        """Judge a turn whose session OpenCode does not know: ended by us, or deleted elsewhere."""
        tracked = await self._store.resolve(self.session.id)
        reason = "the session was ended" if tracked is None else "the session was deleted"
        return Verdict(TurnStatus.CANCELLED, warnings=(("SESSION_GONE", reason),))

    async def _stop(self) -> None:
        """Stop the turn; the next look reads what came of it."""
        budget = Budget(self._clock, STOP_S)
        await wait_until_seen(self.connection.client, self.turn, budget)
        await make_quiet(self.connection.client, self.session, Stopped(), budget)
        self._is_stopped = True

    async def _wait(self, seconds: float) -> None:
        """Wait for an event, a request of ours, or `seconds`."""
        assert self.watch is not None  # noqa: S101 - set by `run`, the only caller
        watching = asyncio.ensure_future(self.watch.wait(seconds))
        poking = asyncio.ensure_future(self._poke.wait())
        try:
            await asyncio.wait({watching, poking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            poking.cancel()
            await asyncio.gather(watching, poking, return_exceptions=True)
        self._poke.clear()

    def _publish(self, verdict: Verdict) -> None:
        if self.verdict.is_over:
            return
        news = (verdict.status, verdict.pending) != (self.verdict.status, self.verdict.pending)
        self.verdict = verdict
        if news:
            self._changed.set()
            self._changed = asyncio.Event()
        if verdict.is_over:
            self._poke.set()

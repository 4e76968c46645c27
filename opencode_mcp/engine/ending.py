"""End a session: the only code by which a tracked session stops being ours.

`_carry_out` reads top to bottom and its order is the design (contract §2.3). Each step is done
only after the one before it is confirmed, and each may be repeated without harm, so whatever
interrupts it (a crash, a lost answer, a cancelled call) is cured by doing it again.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING

from opencode_mcp.engine import telling
from opencode_mcp.engine.budget import Backoff, Budget, BudgetSpentError
from opencode_mcp.engine.confirming import remove
from opencode_mcp.engine.ends import Ended, Unconfirmed, answer_json, answer_of
from opencode_mcp.engine.notices import Notice, warnings_of
from opencode_mcp.engine.outcome import TurnStatus, Verdict
from opencode_mcp.engine.quieting import quiet_down
from opencode_mcp.engine.stopping import Stopped
from opencode_mcp.errors import InstanceUnreachableError, LeaseLostError, StaleSessionError
from opencode_mcp.log_events import Event, only_concerning, tell
from opencode_mcp.opencode_errors import (
    OpencodeError,
    OpencodeRefusedError,
    OpencodeUnauthorizedError,
)
from opencode_mcp.records import EndAction, Tombstone

if TYPE_CHECKING:
    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.instances import Connection, Instances, Reached
    from opencode_mcp.engine.keepers import Keepers
    from opencode_mcp.engine.leases import HeldLease, Leases
    from opencode_mcp.errors import OpencodeMcpError
    from opencode_mcp.records import Session
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)

#: pauses between attempts within one call's limit, in seconds
_RETRY_PAUSES_S = (0.1, 0.25, 0.5, 1.0, 2.0)
#: how often we look whether another process has finished an end
_JOIN_POLL_S = 0.1
_RESTARTS = 3
_DEFINITE = (OpencodeUnauthorizedError, OpencodeRefusedError, InstanceUnreachableError)


class Ender:
    """Ends sessions. Two ends of one session at once are one end with two answers."""

    def __init__(  # noqa: PLR0913 - the parts it works with, all by keyword
        self,
        *,
        store: Store,
        instances: Instances,
        keepers: Keepers,
        leases: Leases,
        clock: Clock,
        cleanup_timeout_s: float,
    ) -> None:
        self._store = store
        self._instances = instances
        self._keepers = keepers
        self._leases = leases
        self._clock = clock
        self._cleanup_timeout_s = cleanup_timeout_s
        self._backoff = Backoff()
        self._under_way: dict[str, asyncio.Task[Ended | Unconfirmed]] = {}
        self._stopped: dict[str, Stopped] = {}

    async def end(
        self, session: Session, action: EndAction | None, default: EndAction
    ) -> Ended | Unconfirmed:
        """Accept the end of a session and carry it out, within the clean-up limit.

        Raises EndConflictError (an archive over a pending delete) and SessionNotFoundError (it
        ended meanwhile, or was forgotten). A cancelled caller lets go; the end goes on.
        """
        known = session.ending
        session = await self._store.begin_end(session.id, action, default)
        if known is None or session.ending is None or known.action is not session.ending.action:
            telling.end_accepted(session, "asked")
        turn = await self._store.turn(session.id, session.turn_count)
        if turn is not None:  # who observes it here is to know why it stops
            self._keepers.learn(turn)
        return await self.carry_on(session)

    def is_under_way(self, session_id: str) -> bool:
        """Whether this process works on the session's end now."""
        return session_id in self._under_way

    async def carry_on(self, session: Session) -> Ended | Unconfirmed:
        """Carry out an end that was accepted before, or join whoever is at it in this process."""
        session_id = session.id
        task = self._under_way.get(session_id)
        if task is None:
            with only_concerning(**telling.ids_of(session)):  # it outlives the call that asks
                task = self._keepers.spawn(self._within_limit(session_id), finish_at_exit=True)
            self._under_way[session_id] = task
            task.add_done_callback(lambda _: self._under_way.pop(session_id, None))
        return await asyncio.shield(task)

    async def _within_limit(self, session_id: str) -> Ended | Unconfirmed:
        budget = Budget(self._clock, self._cleanup_timeout_s)
        # kept over the attempts: after a delete the children cannot be listed any more
        stopped = self._stopped.setdefault(session_id, Stopped())
        reason = "its time ran out before OpenCode confirmed it"
        cause: OpencodeMcpError | None = None
        try:
            return await self._until_confirmed(session_id, stopped, budget)
        except BudgetSpentError as spent:
            if isinstance(spent.__cause__, OpencodeError):
                cause = spent.__cause__
        except _DEFINITE as error:
            cause = error
        if cause is not None:
            reason = str(cause)
        tombstone = await self._store.tombstone(session_id)
        if tombstone is not None:  # another process has ended it at this moment
            self._forget(session_id)
            return answer_of(tombstone)
        session = await self._store.resolve(session_id)
        ending = session.ending if session else None
        action = ending.action if ending else EndAction.DELETE
        await self._put_off(session_id, reason, cause)
        telling.end_unconfirmed({"session_id": session_id}, action, reason)
        return Unconfirmed(session_id, action, reason, cause)

    async def _put_off(self, session_id: str, reason: str, cause: OpencodeMcpError | None) -> None:
        """Try it again later. Who cannot reach the instance does not hold up who can."""
        if not isinstance(cause, InstanceUnreachableError):
            next_at = self._clock.now() + self._backoff.failed(session_id)
            await self._store.note_next_try(session_id, next_at, reason)

    def _forget(self, session_id: str) -> None:
        self._backoff.forget(session_id)
        self._stopped.pop(session_id, None)

    async def _until_confirmed(self, session_id: str, stopped: Stopped, budget: Budget) -> Ended:
        """Try again, with growing pauses, until the end is confirmed or the time is up."""
        pauses = itertools.chain(_RETRY_PAUSES_S, itertools.repeat(_RETRY_PAUSES_S[-1]))
        last: Exception | None = None
        try:
            while True:
                try:
                    return await self._attempt(session_id, stopped, budget)
                except _DEFINITE:
                    raise
                except (OpencodeError, StaleSessionError, LeaseLostError) as error:
                    last = error
                    tell(log, Event.END_ATTEMPT_FAILED, why=str(error))
                await budget.pause(next(pauses))
        except BudgetSpentError as spent:
            raise spent from last

    async def _attempt(self, session_id: str, stopped: Stopped, budget: Budget) -> Ended:
        held = await self._leases.take(session_id)
        if held is None:  # another process of ours is at it: join, and give its answer
            return await self._join(session_id, stopped, budget)
        async with held:
            try:
                return await self._carry_out(session_id, held, stopped, budget.under(held.left_s))
            except (OpencodeError, InstanceUnreachableError) as error:
                await self._store.note_failure(session_id, held.fence, str(error))
                raise

    async def _join(self, session_id: str, stopped: Stopped, budget: Budget) -> Ended:
        while True:
            tombstone = await self._store.tombstone(session_id)
            if tombstone is not None:
                return answer_of(tombstone)
            await budget.pause(_JOIN_POLL_S)
            if await self._leases.is_with_another(session_id):
                continue
            if await self._store.tombstone(session_id) is None:
                return await self._attempt(session_id, stopped, budget)

    async def _carry_out(
        self, session_id: str, held: HeldLease, stopped: Stopped, budget: Budget
    ) -> Ended:
        """Do steps 4 to 9; steps 1 to 3 (resolve, lease, durable intent) lie behind us."""
        session = await self._tracked(session_id)
        reached = await self._reach(session, budget)
        connection, session = reached.connection, reached.session
        turn = await self._store.turn(session.id, session.turn_count)
        keeper = self._keepers.get(session_id)
        await quiet_down(
            connection.client,
            session,
            stopped,
            budget,
            turn=turn,
            keeper=keeper,
            moved=reached.moved,
        )
        for _ in range(_RESTARTS):  # a delete may replace the pending archive meanwhile
            session = await self._tracked(session_id)
            ended = await self._remove(connection, session, stopped, held, budget)
            try:
                await self._remember(session, ended, held)
            except StaleSessionError:
                continue
            return ended
        msg = f"session {session_id} changed again and again while it ended"
        raise StaleSessionError(msg)

    async def _tracked(self, session_id: str) -> Session:
        session = await self._store.resolve(session_id)
        if session is None:
            msg = f"session {session_id} was ended by another process at this moment"
            raise LeaseLostError(msg)
        return session

    async def _reach(self, session: Session, budget: Budget) -> Reached:
        """Reach the session's instance in time; a start that takes longer goes on by itself."""
        task = self._keepers.spawn(self._instances.of(session))
        done, _ = await asyncio.wait({task}, timeout=budget.left_s())
        if not done:
            task.add_done_callback(lambda late: late.cancelled() or late.exception())
            raise BudgetSpentError
        return task.result()

    async def _remove(
        self,
        connection: Connection,
        session: Session,
        stopped: Stopped,
        held: HeldLease,
        budget: Budget,
    ) -> Ended:
        """Do steps 7 and 8: delete or archive, and confirm it by reading."""
        assert session.ending is not None  # noqa: S101 - the store gives ENDING rows one

        async def deleting() -> None:
            await self._store.note_delete_sent(session.id, held.fence)

        action = session.ending.action
        removed = await remove(
            self._store, connection, session, stopped.tree, budget, before_delete=deleting
        )
        return Ended(
            session_id=session.id,
            action=action,
            aborted_running_turn=stopped.cut_turn,
            rejected_permissions=stopped.rejected_permissions,
            rejected_questions=stopped.rejected_questions,
            ended_subsessions=len(stopped.tree.ids) - 1,
            was_gone=removed.was_gone,
        )

    async def _remember(self, session: Session, ended: Ended, held: HeldLease) -> None:
        """Step 9: the row goes, a tombstone with the answer stays, the lease is freed."""
        tombstone = Tombstone(
            session_id=session.id,
            owner=session.owner,
            action=ended.action,
            ended_at=self._clock.now(),
            answer_json=answer_json(ended),
        )
        await self._store.finish_end(tombstone, held.fence)
        held.is_gone = True
        self._forget(session.id)
        note = warnings_of([Notice.SESSION_ENDED], None)
        self._keepers.forget(session.id, Verdict(TurnStatus.CANCELLED, warnings=note))
        since = session.ending.since if session.ending else tombstone.ended_at
        elapsed_s = max(0.0, (tombstone.ended_at - since).total_seconds())
        telling.end_confirmed(session, ended, elapsed_s)

"""End a session: the only code by which a tracked session stops being ours.

`_carry_out` reads top to bottom and its order is the design (contract §2.3). Each step is done
only after the one before it is confirmed, and each may be repeated without harm, so whatever
interrupts it (a crash, a lost answer, a cancelled call) is cured by doing it again.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from opencode_mcp.engine.budget import Budget, BudgetSpentError
from opencode_mcp.engine.confirming import remove
from opencode_mcp.engine.outcome import Evidence, TurnStatus, Verdict, judge
from opencode_mcp.engine.reading import read_turn
from opencode_mcp.engine.stopping import Stopped, make_quiet, wait_until_seen
from opencode_mcp.errors import (
    InstanceUnreachableError,
    LeaseLostError,
    OpencodeError,
    OpencodeNotFoundError,
    OpencodeRefusedError,
    OpencodeUnauthorizedError,
    SessionNotFoundError,
    StaleSessionError,
)
from opencode_mcp.records import EndAction, StopReason, Submission, Tombstone

if TYPE_CHECKING:
    from collections.abc import Callable

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.instances import Connection, Instances, Reached
    from opencode_mcp.engine.keepers import Keepers
    from opencode_mcp.errors import OpencodeMcpError
    from opencode_mcp.records import Lease, Session
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)

#: pauses between attempts within one call's limit, in seconds
_RETRY_PAUSES_S = (0.1, 0.25, 0.5, 1.0, 2.0)
#: how often we look whether another process has finished an end
_JOIN_POLL_S = 0.1
_RESTARTS = 3
_DEFINITE = (OpencodeUnauthorizedError, OpencodeRefusedError, InstanceUnreachableError)


@dataclass(frozen=True, slots=True)
class Ended:
    """A confirmed end, and what it took. `action` is what was confirmed."""

    session_id: str
    action: EndAction
    aborted_running_turn: bool
    rejected_permissions: int
    rejected_questions: int
    ended_subsessions: int
    #: it was deleted elsewhere although an archive was asked for
    was_gone: bool = False


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """An accepted end that is not confirmed: the session stays tracked as ending."""

    session_id: str
    action: EndAction
    reason: str
    #: the fault that OpenCode or the instance gave; None: the time ran out
    cause: OpencodeMcpError | None


class Ender:
    """Ends sessions. Two ends of one session at once are one end with two answers."""

    def __init__(  # noqa: PLR0913 - the parts it works with, all by keyword
        self,
        *,
        store: Store,
        instances: Instances,
        keepers: Keepers,
        clock: Clock,
        holder: str,
        is_dead_holder: Callable[[str], bool],
        cleanup_timeout_s: float,
    ) -> None:
        self._store = store
        self._instances = instances
        self._keepers = keepers
        self._clock = clock
        self._holder = holder
        self._is_dead_holder = is_dead_holder
        self._cleanup_timeout_s = cleanup_timeout_s
        self._under_way: dict[str, asyncio.Task[Ended | Unconfirmed]] = {}

    async def end(
        self, session: Session, action: EndAction | None, default: EndAction
    ) -> Ended | Unconfirmed:
        """Accept the end of a session and carry it out, within the clean-up limit.

        Raises EndConflictError (an archive over a pending delete) and SessionNotFoundError (it
        ended meanwhile). A cancelled caller lets go; the end goes on.
        """
        await self._store.begin_end(session.id, action, default)
        task = self._under_way.get(session.id)
        if task is None:
            task = self._keepers.spawn(self._within_limit(session.id))
            self._under_way[session.id] = task
            task.add_done_callback(lambda _: self._under_way.pop(session.id, None))
        return await asyncio.shield(task)

    async def _within_limit(self, session_id: str) -> Ended | Unconfirmed:
        budget = Budget(self._clock, self._cleanup_timeout_s)
        reason = "its time ran out before OpenCode confirmed it"
        cause: OpencodeMcpError | None = None
        try:
            return await self._until_confirmed(session_id, budget)
        except BudgetSpentError as spent:
            if isinstance(spent.__cause__, OpencodeError):
                cause = spent.__cause__
        except _DEFINITE as error:
            cause = error
        if cause is not None:
            reason = str(cause)
        session = await self._store.resolve(session_id)
        ending = session.ending if session else None
        action = ending.action if ending else EndAction.DELETE
        log.warning("end not confirmed", extra={"session_id": session_id, "why": reason})
        return Unconfirmed(session_id, action, reason, cause)

    async def _until_confirmed(self, session_id: str, budget: Budget) -> Ended:
        """Try again, with growing pauses, until the end is confirmed or the time is up."""
        pauses = itertools.chain(_RETRY_PAUSES_S, itertools.repeat(_RETRY_PAUSES_S[-1]))
        last: Exception | None = None
        try:
            while True:
                try:
                    return await self._attempt(session_id, budget)
                except _DEFINITE:
                    raise
                except (OpencodeError, StaleSessionError, LeaseLostError) as error:
                    last = error
                await budget.pause(next(pauses))
        except BudgetSpentError as spent:
            raise spent from last

    async def _attempt(self, session_id: str, budget: Budget) -> Ended:
        lease = await self._store.take_lease(session_id, self._holder, self._is_dead_holder)
        if lease is None:  # another process of ours is at it: join, and give its answer
            return await self._join(session_id, budget)
        try:
            return await self._carry_out(session_id, lease, budget)
        except SessionNotFoundError:  # ended by another process just before our lease
            tombstone = await self._store.tombstone(session_id)
            if tombstone is None:
                raise
            return _answer_of(tombstone)
        except (OpencodeError, InstanceUnreachableError) as error:
            await self._store.note_attempt(
                session_id, lease.fence, last_error=str(error), new_attempt=False
            )
            raise
        finally:
            await self._store.release_lease(lease)

    async def _join(self, session_id: str, budget: Budget) -> Ended:
        while True:
            tombstone = await self._store.tombstone(session_id)
            if tombstone is not None:
                return _answer_of(tombstone)
            await budget.pause(_JOIN_POLL_S)
            lease = await self._store.take_lease(session_id, self._holder, self._is_dead_holder)
            if lease is not None:
                await self._store.release_lease(lease)
                if await self._store.tombstone(session_id) is None:
                    return await self._attempt(session_id, budget)

    async def _carry_out(self, session_id: str, lease: Lease, budget: Budget) -> Ended:
        """Steps 4 to 9. Steps 1 to 3 (resolve, lease, durable intent) lie behind us."""
        session = await self._tracked(session_id)
        await self._store.note_attempt(session_id, lease.fence, last_error=None, new_attempt=True)
        reached = await self._reach(session, budget)
        connection, session = reached.connection, reached.session
        stopped, aborted = await self._stop(connection, session, budget, moved=reached.moved)
        for _ in range(_RESTARTS):  # a delete may replace the pending archive meanwhile
            session = await self._tracked(session_id)
            ended = await self._remove(connection, session, stopped, lease, budget)
            ended = replace(ended, aborted_running_turn=aborted)
            try:
                await self._forget(session, ended, lease)
            except StaleSessionError:
                continue
            return ended
        raise StaleSessionError(f"session {session_id} changed again and again while it ended")

    async def _tracked(self, session_id: str) -> Session:
        session = await self._store.resolve(session_id)
        if session is None:
            msg = f"session {session_id} was ended by another process at this moment"
            raise SessionNotFoundError(msg, session_id=session_id)
        return session

    async def _reach(self, session: Session, budget: Budget) -> Reached:
        """Reach the session's instance in time; a start that takes longer goes on by itself."""
        task = self._keepers.spawn(self._instances.of(session))
        done, _ = await asyncio.wait({task}, timeout=budget.left_s())
        if not done:
            task.add_done_callback(lambda late: late.cancelled() or late.exception())
            raise BudgetSpentError
        return task.result()

    async def _stop(
        self, connection: Connection, session: Session, budget: Budget, *, moved: bool
    ) -> tuple[Stopped, bool]:
        """Steps 4 to 6: stop the turn, clear what waits. Also tells whether a turn was cut."""
        turn = await self._store.turn(session.id, session.turn_count)
        keeper = self._keepers.get(session.id)
        over = keeper is not None and keeper.verdict.is_over
        if turn is not None and not over and not moved:
            await wait_until_seen(connection.client, turn, budget)
        stopped = await make_quiet(connection.client, session, budget)
        if turn is None or turn.submission is Submission.REFUSED or over or moved:
            return stopped, stopped.was_busy
        try:
            messages = await read_turn(connection.client, turn)
        except OpencodeNotFoundError:
            return stopped, stopped.was_busy
        evidence = Evidence(messages, None, (), StopReason.END, settled=True)
        return stopped, bool(messages) and judge(evidence).status is TurnStatus.CANCELLED

    async def _remove(
        self,
        connection: Connection,
        session: Session,
        stopped: Stopped,
        lease: Lease,
        budget: Budget,
    ) -> Ended:
        """Steps 7 and 8: delete or archive, and confirm it by reading."""
        assert session.ending is not None  # noqa: S101 - the store gives ENDING rows one

        async def deleting() -> None:
            await self._store.note_delete_sent(session.id, lease.fence)

        action = session.ending.action
        removed = await remove(
            self._store, connection, session, stopped.tree, budget, before_delete=deleting
        )
        return Ended(
            session_id=session.id,
            action=action,
            aborted_running_turn=False,
            rejected_permissions=stopped.rejected_permissions,
            rejected_questions=stopped.rejected_questions,
            ended_subsessions=len(stopped.tree.ids) - 1,
            was_gone=removed.was_gone,
        )

    async def _forget(self, session: Session, ended: Ended, lease: Lease) -> None:
        """Step 9: the row goes, a tombstone with the answer stays, the lease is freed."""
        tombstone = Tombstone(
            session_id=session.id,
            owner=session.owner,
            action=ended.action,
            ended_at=self._clock.now(),
            answer_json=json.dumps(asdict(ended)),
        )
        await self._store.finish_end(tombstone, lease.fence)
        note = (("SESSION_ENDED", "the session was ended"),)
        self._keepers.forget(session.id, Verdict(TurnStatus.CANCELLED, warnings=note))
        log.info("session ended", extra={"session_id": session.id, "action": ended.action.value})


def _answer_of(tombstone: Tombstone) -> Ended:
    answer = json.loads(tombstone.answer_json)
    return Ended(**{**answer, "action": EndAction(answer["action"])})

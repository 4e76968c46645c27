"""Carry on what was begun and is not finished, whoever began it.

One task for each process. At intervals, since another process's death announces itself to nobody,
it takes every unfinished intent in the database: turns that are to stop or that nobody observes,
ends not confirmed, sessions idle for too long, sessions created and never tracked. Each is tried
by a task of its own, with back-off, until it is crossed out: one that hangs holds up no other.
"""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Self

from opencode_mcp.engine import telling
from opencode_mcp.engine.budget import Backoff
from opencode_mcp.engine.ends import Unconfirmed
from opencode_mcp.engine.instances import Connection
from opencode_mcp.engine.recovery import OLD_START, settle_old_starts
from opencode_mcp.errors import (
    InstanceUnreachableError,
    OpencodeMcpError,
    SessionNotFoundError,
    StaleSessionError,
    StoreError,
)
from opencode_mcp.log_events import Event, only_concerning, tell, tell_failure
from opencode_mcp.records import Ending

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.ending import Ender
    from opencode_mcp.engine.instances import Instances
    from opencode_mcp.engine.keepers import Keepers
    from opencode_mcp.engine.leases import Leases
    from opencode_mcp.records import EndAction, Session, Turn
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)

#: how often the database is read for intents that nobody works on
ROUND_S = 2.0
#: so long after its deadline a turn of another live process is stopped by us: it may hang
GRACE_S = 15.0
#: ends begun in one round; the rest waits for the next one
_BATCH = 200
_STARTS = "starts"
_FOLDERS = "folders"
#: the wall clock may be corrected by so much
_JUMP_S = 60.0


@dataclass(frozen=True, slots=True)
class IdleRule:
    """What becomes of a session that nobody used for `ttl`; None: nothing."""

    ttl: timedelta | None
    action: EndAction


class Finisher:
    """An async context manager: works from its entry until it is left."""

    def __init__(  # noqa: PLR0913 - the parts it works with, all by keyword
        self,
        *,
        store: Store,
        instances: Instances,
        keepers: Keepers,
        ender: Ender,
        leases: Leases,
        clock: Clock,
        idle_rule: IdleRule,
    ) -> None:
        self._store = store
        self._instances = instances
        self._keepers = keepers
        self._ender = ender
        self._leases = leases
        self._clock = clock
        self._idle_rule = idle_rule
        self._backoff = Backoff()
        #: what is being tried now
        self._under_way: set[str] = set()
        #: what failed, and when it is tried again, on the monotonic clock
        self._put_off_until: dict[str, float] = {}
        #: others' open turns, and when we would step in, on the monotonic clock
        self._late_at: dict[tuple[str, int], float] = {}
        #: how far the wall clock is ahead of the monotonic one, when it was last looked
        self._ahead = clock.now().timestamp() - clock.monotonic()
        #: not before is anything idle, on the monotonic clock
        self._idle_from = clock.monotonic()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to work."""
        with only_concerning():  # whichever call comes first, this is not for it
            self._task = asyncio.create_task(self._work(), name="finisher")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop; what is not finished stays recorded."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _work(self) -> None:
        while True:
            try:
                await self._sweep_turns()
                await self._sweep_idle()
                await self._sweep_ends()
                if await self._store.has_starts(self._clock.now() - OLD_START):
                    self._try(_STARTS, self._settle_starts)
                self._try(_FOLDERS, self._instances.folders.let_go)
            except StoreError as error:
                tell(log, Event.WORK_UNREADABLE, why=str(error))
            except Exception as error:  # noqa: BLE001 - top of a task: it must go on
                tell_failure(log, error, where="a round of the finisher")
            await self._clock.sleep(ROUND_S * random.uniform(0.8, 1.2))  # noqa: S311 - no secret

    def _try(
        self, name: str, work: Callable[[], Awaitable[None]], *, finish_at_exit: bool = False
    ) -> None:
        """Begin `work` in the background, unless it is under way or failed a moment ago."""
        if name in self._under_way or self._put_off_until.get(name, 0) > self._clock.monotonic():
            return
        self._under_way.add(name)
        self._keepers.spawn(self._tried(name, work), finish_at_exit=finish_at_exit)

    async def _tried(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except (StaleSessionError, SessionNotFoundError):  # its session has just ended
            self._forget(name)
        except OpencodeMcpError as error:
            pause = self._backoff.failed(name)
            self._put_off_until[name] = self._clock.monotonic() + pause.total_seconds()
            tell(log, Event.WORK_PUT_OFF, intent=name, why=str(error))
        else:
            self._forget(name)
        finally:
            self._under_way.discard(name)

    def _forget(self, name: str) -> None:
        self._backoff.forget(name)
        self._put_off_until.pop(name, None)

    async def _sweep_turns(self) -> None:
        """Cross out the turns that are over, take up those whose process is dead or hangs."""
        turns = await self._store.open_turns()
        open_now = {(turn.session_id, turn.number) for turn in turns}
        self._late_at = {key: at for key, at in self._late_at.items() if key in open_now}
        for turn in turns:
            self._keepers.learn(turn)
            if self._was_seen_to_be_over(turn):
                self._try(turn.session_id, partial(self._cross_out, turn))
            elif self._is_ours_to_take(turn):
                self._try(turn.session_id, partial(self._take, turn))

    async def _cross_out(self, turn: Turn) -> None:
        await self._store.finish_turn(turn)

    def _was_seen_to_be_over(self, turn: Turn) -> bool:
        """Whether this process has seen its end, and could not write it down then."""
        kept = self._keepers.get(turn.session_id)
        return kept is not None and kept.turn.number == turn.number and kept.crossed_out.is_set()

    def _is_ours_to_take(self, turn: Turn) -> bool:
        kept = self._keepers.get(turn.session_id)
        if kept is not None and kept.turn.number == turn.number and kept.is_owned:
            return False
        if self._keepers.is_submitting(turn.session_id):
            return False
        if turn.holder in {None, self._keepers.holder}:
            return True
        return self._is_without_holder(turn)

    def _is_without_holder(self, turn: Turn) -> bool:
        """Whether the process that answers for the turn is dead, or hangs."""
        return self._is_late(turn) or self._keepers.is_dead_holder(str(turn.holder))

    def _is_late(self, turn: Turn) -> bool:
        """Whether another's turn runs on past its deadline, however our wall clock jumps.

        Also one whose deadline is past when it is first seen gets the grace: its process may be at
        it, or a clock was set.
        """
        now = self._clock.monotonic()
        left_s = max(0.0, (turn.deadline_at - self._clock.now()).total_seconds()) + GRACE_S
        return now >= self._late_at.setdefault((turn.session_id, turn.number), now + left_s)

    async def _take(self, turn: Turn) -> None:
        session = await self._store.resolve(turn.session_id)
        if session is None or session.ending is not None:  # its end carries the turn along
            return
        # it may have been refused since it was read; no prompt is on its way now
        newest = await self._store.turn(turn.session_id, turn.number)
        if newest is None or newest.finished_at is not None:
            return
        turn = newest
        if turn.number < session.turn_count:  # a later prompt was let in: it was seen to be over
            await self._over_unseen(session, turn)
            return
        if turn.holder != self._keepers.holder:  # it is dead or hangs: the turn is ours now
            turn = replace(turn, holder=None)
        found = await self._instances.glance(session)
        if isinstance(found, Connection):
            tell(log, Event.TURN_TAKEN_UP, **telling.ids_of(session, turn), turn=turn.number)
            await self._keepers.take_up(self._keepers.make(found, session, turn))
        else:  # proven dead: nothing of it runs any more (facts 9.1); no need to start one
            await self._over_unseen(session, turn)

    async def _over_unseen(self, session: Session, turn: Turn) -> None:
        await self._store.finish_turn(turn)
        elapsed_s = max(0.0, (self._clock.now() - turn.created_at).total_seconds())
        telling.turn_over_unseen(session, turn, elapsed_s)

    async def _sweep_idle(self) -> None:
        """Accept the end of what nobody used for so long; the next sweep carries it out."""
        rule = self._idle_rule
        if rule.ttl is None:
            return
        if self._has_jumped():  # what looks idle may have been used a moment ago
            self._idle_from = self._clock.monotonic() + rule.ttl.total_seconds()
        if self._clock.monotonic() < self._idle_from:
            return
        before = self._clock.now() - rule.ttl
        for session in await self._store.idle_sessions(before, _BATCH):
            if await self._store.begin_idle_end(session.id, before, rule.action):
                ending = Ending(rule.action, self._clock.now())
                telling.end_accepted(replace(session, ending=ending), "idle")

    def _has_jumped(self) -> bool:
        """Whether the wall clock was set ahead since the last look."""
        ahead = self._clock.now().timestamp() - self._clock.monotonic()
        jump_s, self._ahead = ahead - self._ahead, ahead
        return jump_s > _JUMP_S

    async def _sweep_ends(self) -> None:
        for session in await self._store.endings(self._clock.now(), _BATCH):
            if self._ender.is_under_way(session.id):
                continue
            if not await self._leases.is_with_another(session.id):
                work = partial(self._finish_end, session)
                self._try(f"end of {session.id}", work, finish_at_exit=True)

    async def _finish_end(self, session: Session) -> None:
        """Try the end once more; what comes of it is in the session's row.

        Raises InstanceUnreachableError: when this process tries again is its own affair, since
        another one may reach the instance.
        """
        end = await self._ender.carry_on(session)
        if isinstance(end, Unconfirmed) and isinstance(end.cause, InstanceUnreachableError):
            raise end.cause

    async def _settle_starts(self) -> None:
        connection = await self._instances.own_unless_started()
        if connection is not None:
            await settle_old_starts(self._store, connection, self._clock)

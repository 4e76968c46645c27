"""Carry on what was begun and is not finished: ends not confirmed, turns that are to stop.

One task for each process. It takes every unfinished intent in the database, also those that another
process recorded and died over, and carries it on with back-off until it is crossed out. It looks
at intervals, since another process's death announces itself to nobody.
"""

from __future__ import annotations

import asyncio
import logging
import random
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from opencode_mcp.engine.budget import Backoff
from opencode_mcp.engine.ends import Unconfirmed
from opencode_mcp.engine.instances import Connection
from opencode_mcp.errors import OpencodeMcpError, StaleSessionError, StoreError

if TYPE_CHECKING:
    from datetime import datetime

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.ending import Ender
    from opencode_mcp.engine.instances import Instances
    from opencode_mcp.engine.keepers import Keepers
    from opencode_mcp.engine.leases import Leases
    from opencode_mcp.records import Session, Turn
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)

#: how often the database is read for intents that nobody works on
ROUND_S = 2.0
#: so long after its deadline a turn of another live process is stopped by us: it may hang
GRACE = timedelta(seconds=15)
#: of each kind a round; the rest waits for the next one
_BATCH = 200


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
    ) -> None:
        self._store = store
        self._instances = instances
        self._keepers = keepers
        self._ender = ender
        self._leases = leases
        self._clock = clock
        self._backoff = Backoff()
        #: sessions whose turn could not be taken up, and when it is tried again
        self._put_off_until: dict[str, datetime] = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to work."""
        self._task = asyncio.create_task(self._work(), name="finisher")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop; what is not finished stays recorded."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _sweep_turns(self) -> None:
        """Cross out the turns that are over, take up those whose process is dead."""
        for turn in await self._store.open_turns(_BATCH):
            await self._try_turn(turn)

    async def _work(self) -> None:
        while True:
            try:
                await self._sweep_turns()
                await self._sweep_ends()
            except StoreError as error:
                log.warning("unfinished work cannot be read", extra={"why": str(error)})
            except Exception:
                # Top of a task: a bug in here must not leave everything unfinished.
                log.exception("a round of the finisher failed")
            await self._clock.sleep(ROUND_S * random.uniform(0.8, 1.2))  # noqa: S311 - no secret

    async def _try_turn(self, turn: Turn) -> None:
        """Take the turn up, unless its own process is at it or it was tried a moment ago."""
        if not self._is_ours_to_take(turn) or not self._is_due(turn.session_id):
            return
        try:
            if self._was_seen_to_be_over(turn):
                await self._store.finish_turn(turn)
            else:
                await self._take(turn)
        except StaleSessionError:  # its session has just ended
            return
        except OpencodeMcpError as error:
            self._put_off(turn.session_id, str(error))
        else:
            self._backoff.forget(turn.session_id)
            self._put_off_until.pop(turn.session_id, None)

    def _was_seen_to_be_over(self, turn: Turn) -> bool:
        """Whether this process has seen its end, and could not write it down then."""
        kept = self._keepers.get(turn.session_id)
        return kept is not None and kept.turn.number == turn.number and kept.crossed_out.is_set()

    def _is_ours_to_take(self, turn: Turn) -> bool:
        kept = self._keepers.get(turn.session_id)
        if kept is not None and kept.turn.number == turn.number:
            return kept.crossed_out.is_set() or kept.turn.stop_reason is not turn.stop_reason
        if self._keepers.is_submitting(turn.session_id):
            return False
        if turn.holder in {None, self._keepers.holder}:
            return True
        is_late = self._clock.now() > turn.deadline_at + GRACE
        return is_late or self._keepers.is_dead_holder(str(turn.holder))

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
            await self._store.finish_turn(turn)
            return
        found = await self._instances.glance(session)
        if isinstance(found, Connection):
            await self._keepers.take_up(self._keepers.make(found, session, turn))
        else:  # proven dead: nothing of it runs any more (facts 9.1); no need to start one
            await self._store.finish_turn(turn)

    async def _sweep_ends(self) -> None:
        for session in await self._store.endings(_BATCH):
            ending = session.ending
            if ending is None or self._ender.is_under_way(session.id):
                continue
            at = ending.next_at
            is_due = at is None or at <= self._clock.now()
            if is_due and not await self._leases.is_with_another(session.id):
                self._keepers.spawn(self._finish_end(session), finish_at_exit=True)

    async def _finish_end(self, session: Session) -> None:
        """Try the end once more; what comes of it is in the session's row."""
        try:
            end = await self._ender.carry_on(session.id)
        except OpencodeMcpError as error:
            log.warning("end not finished", extra={"session_id": session.id, "why": str(error)})
            return
        if not isinstance(end, Unconfirmed):
            log.info("end finished in the background", extra={"session_id": session.id})

    def _is_due(self, name: str) -> bool:
        until = self._put_off_until.get(name)
        return until is None or until <= self._clock.now()

    def _put_off(self, name: str, why: str) -> None:
        self._put_off_until[name] = self._clock.now() + self._backoff.failed(name)
        log.info("turn not taken up yet", extra={"session_id": name, "why": why})

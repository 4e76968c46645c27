"""Halt one turn and prove that it is over (contract §2.2).

A `true` from an abort proves nothing: it is given for an idle session too (facts 4.5), and an
abort that comes before the prompt is resolved is lost (facts 4.6). So what counts is an abort of
ours that was answered after the turn was seen busy, and a session that stays quiet after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.engine.budget import Budget, BudgetSpentError
from opencode_mcp.engine.history import newest_prompt
from opencode_mcp.engine.stopping import Stopped, make_quiet, wait_until_seen
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode_errors import OpencodeError, OpencodeTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.observing import Observer

#: how long one attempt may take: a process that ignores TERM takes 3 s (facts 4.2)
HALT_S = 15.0
#: never seen busy: so long no busy must be seen after the abort (contract §2.2)
STAY_QUIET_S = 0.5
_QUIET_POLL_S = 0.1
#: how long a turn that never was seen busy is guarded after it was called over. A prompt took
#: 1.3 s to become busy with 3.4 MB of text (facts 4.6)
GUARD_S = 10.0
_GUARD_POLL_S = 0.5


class Halt:
    """How far the stop of one turn has come. `announce` is called when there is news."""

    def __init__(self, observer: Observer, *, clock: Clock, announce: Callable[[], None]) -> None:
        #: an abort is on its way to OpenCode, or was answered
        self.is_sent = False
        #: an abort was answered
        self.is_answered = False
        self._observer = observer
        self._clock = clock
        self._announce = announce

    async def carry_out(self) -> None:
        """Abort, clear what waits, and prove the turn over, or raise; may be repeated.

        Raises OpencodeError, and BudgetSpentError when it is not quiet within `HALT_S` seconds.
        """
        observer = self._observer
        client, session = observer.connection.client, observer.session
        budget = Budget(self._clock, HALT_S)
        try:
            seen = observer.seen or await wait_until_seen(client, observer.turn, budget)
        except OpencodeTimeoutError:  # it hangs: the abort is to be there when it wakes up
            await self._abort(budget)
            raise
        await self._abort(budget)
        stopped = Stopped(was_busy=observer.seen_busy)
        await make_quiet(
            client, session, stopped, budget, abort_first=False, still_ours=self._is_newest
        )
        if not stopped.was_busy:
            await self._stay_quiet(stopped, budget)
        if not seen and session.phase is Phase.QUARANTINED:
            # Whether OpenCode has the prompt is not known: it may still come.
            msg = "the prompt is not visible, and whether OpenCode has it is not known"
            raise BudgetSpentError(msg)
        observer.proven_over = True

    async def guard(self) -> None:
        """Abort again, should a turn that was never seen busy begin after all.

        Only while the session's newest prompt is ours. What fails is left: whoever looks at the
        session later sees it busy.
        """
        observer = self._observer
        if observer.seen_busy or not observer.turn.stop_reason:
            return
        client, session = observer.connection.client, observer.session
        budget = Budget(self._clock, GUARD_S)
        try:
            while True:
                await budget.pause(_GUARD_POLL_S)
                left_s = budget.left_s()
                if session.id not in await client.statuses(session.directory, timeout_s=left_s):
                    continue
                if not await self._is_newest():
                    return
                await self._abort(budget)
        except (BudgetSpentError, OpencodeError):
            return

    async def _is_newest(self) -> bool:
        """Whether no prompt came after the turn's own: a late stop must not hit the next turn."""
        observer = self._observer
        newest = await newest_prompt(observer.connection.client, observer.session.id)
        return newest in {None, observer.turn.message_id}

    async def _abort(self, budget: Budget) -> None:
        """Send the abort before any look: an OpenCode that hangs must get it, too."""
        session = self._observer.session
        self.is_sent = True
        self._announce()
        try:
            await self._observer.connection.client.abort(
                session.id, session.directory, timeout_s=budget.left_s()
            )
        except OpencodeError as error:
            self.is_sent = self.is_answered or error.outcome_unknown
            raise
        self.is_answered = True
        self._announce()

    async def _stay_quiet(self, stopped: Stopped, budget: Budget) -> None:
        """Read for `STAY_QUIET_S` that the session does not turn busy; if it does, abort it."""
        observer = self._observer
        client, session = observer.connection.client, observer.session
        until = budget.elapsed_s + STAY_QUIET_S
        while budget.elapsed_s < until:
            await budget.pause(_QUIET_POLL_S)
            if session.id in await client.statuses(session.directory, timeout_s=budget.left_s()):
                observer.saw_busy()
                await make_quiet(client, session, stopped, budget, still_ours=self._is_newest)
                return

"""Ask a running turn to stop, and say what is known of it: a request is not an outcome.

The wish is written down before anything is sent, so it is carried out even if this process dies;
stopping itself is the keeper's work. Contract §2.2.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opencode_mcp.engine import telling
from opencode_mcp.engine.closing import CHANGED_BY_S
from opencode_mcp.engine.looking_back import end_of_older
from opencode_mcp.engine.quarantine import free_if_settled
from opencode_mcp.errors import InstanceUnreachableError, OpencodeMcpError, TurnNotFoundError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode_errors import OpencodeError, OpencodeTimeoutError
from opencode_mcp.records import StopReason

if TYPE_CHECKING:
    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.closing import Closing
    from opencode_mcp.engine.instances import Instances, Reached
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.keepers import Keepers
    from opencode_mcp.engine.outcome import Verdict
    from opencode_mcp.records import Session, Turn
    from opencode_mcp.store.store import Store

#: how long the look beforehand may take: an OpenCode that hangs must get the abort all the same
LOOK_S = 2.0
#: how long to wait for the abort to be on its way, whatever `wait-ms` says: a prompt that is not
#: visible yet is waited for, or the abort would be lost (contract §2.2, facts 4.6)
SEND_S = 11.0


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What is known of a turn that was asked to stop."""

    session: Session
    turn: Turn
    #: None: nothing could be read of it
    verdict: Verdict | None
    #: an abort is on its way or was answered; false if the turn was over before
    accepted: bool
    already_done: bool = False
    #: why the abort could not be sent; the wish is recorded and is tried again
    fault: OpencodeMcpError | None = None

    @property
    def done(self) -> bool:
        """Whether the turn is proven over."""
        return self.verdict is not None and self.verdict.is_over


class Canceller:
    """Cancels turns. Repeating it is safe."""

    def __init__(
        self,
        *,
        store: Store,
        instances: Instances,
        keepers: Keepers,
        clock: Clock,
        closing: Closing,
    ) -> None:
        self._store = store
        self._instances = instances
        self._keepers = keepers
        self._clock = clock
        self._closing = closing

    async def cancel(
        self, session: Session, message_id: str | None, wait_s: float
    ) -> Cancelled | None:
        """Ask the turn of `message_id` (None: the newest) to stop; watch it for `wait_s` seconds.

        None: the session has no turn. Where OpenCode cannot be reached the wish is recorded for
        whoever reaches it. Raises TurnNotFoundError; OpencodeError and InstanceUnreachableError
        where the turn is over and its end cannot be read.
        """
        turn = await self._turn(session, message_id)
        if turn is None:
            return None
        if turn.number < session.turn_count:
            return await self._of_an_older(session, turn)
        if session.phase is Phase.ENDING:  # the end's own abort is pending
            return Cancelled(session, turn, None, accepted=True)
        return await self._the_newest(session, turn, wait_s)

    async def _the_newest(self, session: Session, turn: Turn, wait_s: float) -> Cancelled:
        """Cancel the current turn, unless it is over."""
        known = self._keepers.get(session.id)
        if known is not None and known.turn.number == turn.number and known.verdict.is_over:
            return await self._over(known, known.verdict, wait_s)
        try:
            reached = await self._instances.of(session)
        except (InstanceUnreachableError, OpencodeError) as error:
            return await self._only_record(session, turn, error)
        keeper, verdict = await self._look(reached, turn)
        if verdict is not None and verdict.is_over:
            return await self._over(keeper, verdict, wait_s)
        return await self._ask(keeper, wait_s)

    async def _over(self, keeper: Keeper, verdict: Verdict, wait_s: float) -> Cancelled:
        """Answer with the turn's own end; free a session that is busy although it is over (B07)."""
        if verdict.execution != "unknown":
            return _already_done(keeper.session, keeper.turn, verdict)
        halting = self._keepers.spawn(keeper.halt.carry_out())
        halting.add_done_callback(lambda task: task.cancelled() or task.exception())
        watching = asyncio.wait({halting}, timeout=max(wait_s, LOOK_S))
        await self._closing.until(watching, CHANGED_BY_S)
        return Cancelled(keeper.session, keeper.turn, verdict, accepted=keeper.halt.is_sent)

    async def _turn(self, session: Session, message_id: str | None) -> Turn | None:
        if message_id is None:
            return await self._store.turn(session.id, session.turn_count)
        turn = await self._store.turn_by_message(session.id, message_id)
        if turn is None:
            msg = (
                f"session {session.id} has no turn {message_id[:100]!r}: leave turnId out for the"
                " newest one, or take it from opencode-status"
            )
            raise TurnNotFoundError(msg, session_id=session.id)
        return turn

    async def _of_an_older(self, session: Session, turn: Turn) -> Cancelled:
        """Answer with the end of a turn that is not the current one: nothing is sent."""
        session, verdict = await end_of_older(
            self._store, self._instances, self._keepers, session, turn
        )
        return _already_done(session, turn, verdict)

    async def _only_record(
        self, session: Session, turn: Turn, fault: InstanceUnreachableError | OpencodeError
    ) -> Cancelled:
        """Keep the wish; nothing can be sent now. Raises `fault` if the turn was over before."""
        if turn.finished_at is not None:
            raise fault
        known = turn.stop_reason
        turn = await self._store.set_stop_reason(turn, StopReason.CANCEL)
        if known is None and turn.stop_reason is StopReason.CANCEL:
            telling.stop_asked(session, turn, StopReason.CANCEL)
        return Cancelled(session, turn, None, accepted=False, fault=fault)

    async def _look(self, reached: Reached, turn: Turn) -> tuple[Keeper, Verdict | None]:
        """Return the turn's keeper and what it comes to now; None: that cannot be read in time."""
        known = self._keepers.get(reached.session.id)
        if known is None or known.turn.number != turn.number:
            known = self._keepers.make(reached.connection, reached.session, turn)
            known.observer.proven_over |= reached.moved
        try:
            async with asyncio.timeout(LOOK_S):
                await free_if_settled(self._store, known.observer, moved=reached.moved)
                return known, await known.observer.look_until_clear()
        except (TimeoutError, OpencodeError, InstanceUnreachableError):
            return known, None

    async def _ask(self, keeper: Keeper, wait_s: float) -> Cancelled:
        """Record the wish, let the keeper carry it out, and watch."""
        keeper = await self._keepers.take_up(keeper)
        await keeper.ask_to_stop(StopReason.CANCEL)
        await self._closing.until(self._watch(keeper, wait_s), CHANGED_BY_S)
        halt, trouble = keeper.halt, keeper.trouble
        accepted = halt.is_sent or keeper.verdict.is_over
        fault = trouble.error if trouble and not accepted else None
        if not accepted and fault is None:
            text = "OpenCode did not answer before the abort could be sent"
            fault = OpencodeTimeoutError(text)
        return Cancelled(
            keeper.session,
            keeper.turn,
            keeper.verdict,
            accepted=accepted,
            fault=fault if isinstance(fault, OpencodeMcpError) else None,
        )

    async def _watch(self, keeper: Keeper, wait_s: float) -> None:
        """Wait until the turn is over; until the abort is sent and `wait_s` is up; or until not."""
        started = self._clock.monotonic()
        while not keeper.verdict.is_over:
            elapsed_s = self._clock.monotonic() - started
            settled = keeper.halt.is_sent or keeper.trouble is not None
            left_s = (wait_s if settled else max(SEND_S, wait_s)) - elapsed_s
            if left_s <= 0:
                return
            await keeper.changed(left_s)


def _already_done(session: Session, turn: Turn, verdict: Verdict) -> Cancelled:
    return Cancelled(session, turn, verdict, accepted=False, already_done=True)

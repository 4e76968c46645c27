"""What becomes of the turns of this process when it exits: `ON_EXIT` (contract §4).

Whatever it is, it is written down before anything is sent, so that what is not done when the time
is up is carried on by the next start, or by another process on the same database.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Self

from opencode_mcp.engine import telling
from opencode_mcp.engine.closing import TURNS_BY_S
from opencode_mcp.errors import OpencodeMcpError
from opencode_mcp.log_events import Event, tell
from opencode_mcp.records import ExitAction, StopReason

if TYPE_CHECKING:
    from opencode_mcp.engine.closing import Closing
    from opencode_mcp.engine.ending import Ender
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.keepers import Keepers
    from opencode_mcp.records import EndAction
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)


class Leaver:
    """An async context manager: parts with the turns of this process when it is left."""

    def __init__(  # noqa: PLR0913 - the parts it works with, all by keyword
        self,
        *,
        store: Store,
        keepers: Keepers,
        ender: Ender,
        closing: Closing,
        action: ExitAction,
        end_action: EndAction,
    ) -> None:
        self._store = store
        self._keepers = keepers
        self._ender = ender
        self._closing = closing
        self._action = action
        self._end_action = end_action
        #: sessions whose turn was parted with
        self._parted: set[str] = set()

    async def __aenter__(self) -> Self:
        """Nothing is to be done yet."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop the turns, end their sessions or let them be; then end every task of the engine."""
        half_begun = self._keepers.close()
        self._part_with_all()
        for beginning in self._keepers.beginnings:
            self._keepers.spawn(self._part_once_begun(beginning), finish_at_exit=True)
        await self._keepers.finish(self._closing.left_s(TURNS_BY_S))
        await self._keepers.cancel()
        for session_id in half_begun - self._parted:
            await self._record(session_id)

    def _part_with_all(self) -> None:
        for keeper in self._keepers.running():
            session_id = keeper.session.id
            if session_id in self._parted:
                continue
            self._parted.add(session_id)
            work = self._part_with(keeper)
            self._keepers.spawn(work, finish_at_exit=True)

    async def _part_once_begun(self, beginning: asyncio.Task[Keeper]) -> None:
        """Let a prompt that is on its way arrive, or fail; part with its turn, if it has one."""
        await asyncio.wait({beginning})
        self._part_with_all()

    async def _part_with(self, keeper: Keeper) -> None:
        """Do with one running turn what is set; a stop that was asked for before is awaited."""
        stops = keeper.turn.stop_reason is not None
        try:
            if keeper.is_owned and self._action is ExitAction.END:
                await self._ender.end(keeper.session, None, self._end_action)
                return
            if keeper.is_owned and self._action is ExitAction.ABORT:
                await keeper.ask_to_stop(StopReason.CANCEL)
                stops = True
        except OpencodeMcpError as error:
            _log_failure(keeper.session.id, error)
        if stops:
            await keeper.crossed_out.wait()

    async def _record(self, session_id: str) -> None:
        """Leave a turn whose prompt was still on its way to the next start."""
        try:
            session = await self._store.resolve(session_id)
            if session is None:
                return
            turn = await self._store.turn(session_id, session.turn_count)
            if turn is None or turn.finished_at is not None:
                return
            if self._action is ExitAction.END:
                ending = await self._store.begin_end(session_id, None, self._end_action)
                telling.end_accepted(ending, "exit")
            elif self._action is ExitAction.ABORT:
                turn = await self._store.set_stop_reason(turn, StopReason.CANCEL)
                telling.stop_asked(session, turn, StopReason.CANCEL)
        except OpencodeMcpError as error:
            _log_failure(session_id, error)


def _log_failure(session_id: str, error: Exception) -> None:
    tell(log, Event.TURN_NOT_PARTED, session_id=session_id, why=str(error))

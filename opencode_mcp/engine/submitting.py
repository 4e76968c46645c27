"""Send a prompt, once, and know what became of it.

A prompt is a submission: it is never sent again after bytes may have left. A lost answer is settled
by reading the message under the id that we gave it (facts 2.5); what cannot be settled puts the
session in quarantine.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from opencode_mcp.engine import telling
from opencode_mcp.engine.structured import instructions_for
from opencode_mcp.errors import StaleSessionError, SubmissionUnconfirmedError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.log_events import Event, tell
from opencode_mcp.opencode.client import Prompt
from opencode_mcp.opencode_errors import OpencodeError, OpencodeNotFoundError
from opencode_mcp.records import StopReason

if TYPE_CHECKING:
    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.instances import Connection
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.keepers import Keepers
    from opencode_mcp.records import Session, Turn
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)

#: how often, and how long apart, a prompt whose answer was lost is looked for
_LOOKS = 8
_LOOK_GAP_S = 0.25


class Submitter:
    """Sends prompts whose turns are recorded."""

    def __init__(self, *, store: Store, keepers: Keepers, clock: Clock) -> None:
        self._store = store
        self._keepers = keepers
        self._clock = clock

    async def submit(
        self, connection: Connection, session: Session, turn: Turn, prompt: str
    ) -> Keeper:
        """Send the prompt and return the keeper that observes its turn."""
        keeper = self._keepers.make(connection, session, turn)
        with self._keepers.beginning(keeper) as observe:
            try:
                await connection.client.prompt_async(session.id, _prompt(session, turn, prompt))
            except OpencodeError as error:
                if not error.outcome_unknown:
                    with suppress(StaleSessionError):  # it was ended meanwhile
                        await self._store.refuse_turn(turn)
                    raise
                if not await self._arrived(connection, session, turn):
                    keeper.observer.session = await self._quarantine(session)
                    observe()  # should it come after all, it is watched
                    raise unconfirmed(session) from error
            observe()
        telling.turn_submitted(session, turn, prompt)
        self._keepers.spawn(self._stop_if_ended(keeper))
        return keeper

    async def _stop_if_ended(self, keeper: Keeper) -> None:
        """Stop what was sent too late: its session was archived while the prompt was on its way."""
        if await self._store.resolve(keeper.session.id) is None:
            await keeper.ask_to_stop(StopReason.CANCEL)

    async def _arrived(self, connection: Connection, session: Session, turn: Turn) -> bool:
        """Settle a lost answer by reading our own message; false: it is not there, or not known."""
        for _ in range(_LOOKS):
            try:
                await connection.client.message(session.id, turn.message_id)
            except OpencodeNotFoundError:
                await self._clock.sleep(_LOOK_GAP_S)
            except OpencodeError:
                break
            else:
                return True
        return False

    async def _quarantine(self, session: Session) -> Session:
        current = await self._store.resolve(session.id)
        if current is not None and current.phase is Phase.ACTIVE:
            tell(log, Event.SESSION_QUARANTINED)
            return await self._store.move(current, Phase.QUARANTINED)
        return current or session


def unconfirmed(session: Session) -> SubmissionUnconfirmedError:
    """Return the error of a prompt whose fate is unknown."""
    msg = (
        f"the prompt was sent to session {session.id} and OpenCode's answer was lost, so it may or"
        " may not run. Do not send it again: opencode-status looks again, opencode-end ends the"
        " session."
    )
    return SubmissionUnconfirmedError(msg, session_id=session.id)


def _prompt(session: Session, turn: Turn, text: str) -> Prompt:
    """Compose the prompt. OpenCode appends `system` to its own system prompt (facts 2.6)."""
    parts = [session.base_instructions, session.developer_instructions]
    if turn.output_schema is not None:  # last: what is asked of this turn's answer
        parts.append(instructions_for(turn.output_schema))
    return Prompt(
        message_id=turn.message_id,
        text=text,
        model=session.model,
        agent=session.agent,
        variant=session.variant,
        system="\n\n".join(part for part in parts if part) or None,
    )

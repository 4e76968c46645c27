"""Read what any turn of a tracked session left, from OpenCode's history by the turn's interval.

Nothing of it is stored, so it is there after a restart and in every process, and gone with its
session alone. What was read is kept in memory for the next page (`snapshots`), and given without
another read to whoever names its snapshot id, or, once the turn is over, to whoever asks: it
changes no more. Whether the caller may see the session is checked before anything is looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn

from opencode_mcp.engine.changes import FoundChanges, changes_of
from opencode_mcp.engine.interval import read_interval
from opencode_mcp.engine.outcome import Evidence, judge
from opencode_mcp.engine.sections import Section, chars_of, digested, tool_log
from opencode_mcp.engine.snapshots import snapshot_id
from opencode_mcp.engine.steps import own_messages
from opencode_mcp.engine.whose_data import refuse_foreign_data
from opencode_mcp.errors import (
    OutputNotReadyError,
    OutputUnavailableError,
    SessionNotFoundError,
    SnapshotExpiredError,
    TurnNotFoundError,
)
from opencode_mcp.opencode.models import RemoteStatus
from opencode_mcp.opencode_errors import OpencodeNotFoundError
from opencode_mcp.records import Submission

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.instances import Connection, Instances
    from opencode_mcp.engine.outcome import Verdict
    from opencode_mcp.engine.overview import Overview
    from opencode_mcp.engine.sections import Content
    from opencode_mcp.engine.snapshots import Snapshots
    from opencode_mcp.engine.structured import Structures
    from opencode_mcp.opencode.client import OpencodeClient
    from opencode_mcp.opencode.whole_messages import WholeMessage
    from opencode_mcp.records import Session, Turn
    from opencode_mcp.store.store import Store

#: how long a turn's diff is waited for after its end; OpenCode takes some 0.2 s (tried on 1.18.33)
DIFF_SETTLE_S = 2.0
DIFF_POLL_S = 0.1
_BUSY = RemoteStatus(type="busy")
#: instead of a snapshot id: what a turn that is over has left for good; a diff comes later
_FINAL = "final"


@dataclass(frozen=True, slots=True)
class Reading:
    """A section as it was read at one moment."""

    content: Content
    #: the turn goes on, or was cut short, or something of it could not be read
    is_partial: bool
    snapshot_id: str
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class TurnOutput:
    """A section of a turn."""

    session: Session
    turn: Turn
    reading: Reading


@dataclass(frozen=True, slots=True)
class _Look:
    """A turn as it was read: its own messages, and what they come to."""

    turn: Turn
    own: Sequence[WholeMessage]
    verdict: Verdict
    #: nothing of it was too large or too much
    is_whole: bool


class Outputs:
    """Gives sections of turns. Changes nothing in OpenCode."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts that reading takes
        self,
        store: Store,
        instances: Instances,
        overview: Overview,
        clock: Clock,
        snapshots: Snapshots[Reading],
        structures: Structures,
    ) -> None:
        self._store = store
        self._instances = instances
        self._overview = overview
        self._clock = clock
        self._snapshots = snapshots
        self._structures = structures

    async def read(
        self, session: Session, number: int, section: Section, wanted: str | None
    ) -> TurnOutput:
        """Return a section of the session's `number`th turn; `wanted`: the snapshot it must be.

        Raises TurnNotFoundError, OutputNotReadyError, OutputUnavailableError, SnapshotExpiredError,
        SessionNotFoundError (it ends meanwhile), InstanceUnreachableError, OpencodeError.
        """
        turn = await self._turn(session, number)
        reading = self._kept(turn, section, wanted) or await self._read(session, turn, section)
        if wanted not in {None, reading.snapshot_id}:
            msg = (
                "what that snapshot-id pinned has changed and is not kept any more: begin again at"
                " offset 0 without snapshot-id"
            )
            raise SnapshotExpiredError(msg, session_id=session.id)
        return TurnOutput(session, turn, reading)

    async def _turn(self, session: Session, number: int) -> Turn:
        turn = await self._store.turn(session.id, number)
        if turn is None:
            count = session.turn_count
            have = f"its turns are 1 to {count}" if count else "it has none"
            msg = f"session {session.id} has no turn {number}: {have}"
            raise TurnNotFoundError(msg, session_id=session.id)
        if turn.submission is Submission.REFUSED:
            msg = f"OpenCode never took the prompt of turn {number}: it left nothing"
            raise OutputUnavailableError(msg, session_id=session.id)
        return turn

    async def _read(self, session: Session, turn: Turn, section: Section) -> Reading:
        """Read a section now, and keep it."""
        is_over = await self._is_over(session, turn)
        if section is Section.STRUCTURED_OUTPUT and not is_over:
            raise _not_ready(turn, "its structured output is there when it is over")
        reached = await self._instances.of(session)
        client = reached.connection.client
        observed_at = self._clock.now()
        try:
            look = await self._look(client, turn, is_over=is_over)
            content, is_partial = await self._content(client, look, section)
        except OpencodeNotFoundError:
            await self._refuse_gone(reached.connection, session)
        reading = Reading(content, is_partial, snapshot_id(digested(content)), observed_at)
        is_final = _is_on_record_as_over(session, turn) and section is not Section.DIFF
        key = _key(turn, section, _FINAL if is_final else reading.snapshot_id)
        self._snapshots.keep(key, reading, chars_of(content))
        return reading

    def _kept(self, turn: Turn, section: Section, wanted: str | None) -> Reading | None:
        """Return what was read before, if it will do."""
        final = self._snapshots.find(_key(turn, section, _FINAL))
        if final is not None and wanted in {None, final.snapshot_id}:
            return final
        return self._snapshots.find(_key(turn, section, wanted)) if wanted else None

    async def _is_over(self, session: Session, turn: Turn) -> bool:
        """Whether nothing more will come of the turn: it is on record, or it is read now."""
        if _is_on_record_as_over(session, turn):
            return True
        view = await self._overview.view(session)
        return view.verdict is not None and view.verdict.is_over

    async def _look(self, client: OpencodeClient, turn: Turn, *, is_over: bool) -> _Look:
        """Read the turn's messages and judge them. Raises OutputUnavailableError without any."""
        later = await self._store.later_prompts(turn)
        interval = await read_interval(client, turn, later)
        if is_over and not interval.messages:
            msg = f"OpenCode's history does not have turn {turn.number} any more"
            raise OutputUnavailableError(msg, session_id=turn.session_id)
        own = own_messages(interval.messages, stopped=turn.stop_reason is not None)
        status = None if is_over else _BUSY
        verdict = judge(Evidence(own, status, (), turn.stop_reason, settled=is_over))
        return _Look(turn, own, verdict, interval.is_whole)

    async def _content(
        self, client: OpencodeClient, look: _Look, section: Section
    ) -> tuple[Content, bool]:
        """Return a section's content, and whether it is not the whole of it."""
        verdict, turn = look.verdict, look.turn
        match section:
            case Section.ANSWER:
                if verdict.is_over and not verdict.answer:
                    msg = f"turn {turn.number} left no text: see its tool-calls, or opencode-status"
                    raise OutputUnavailableError(msg, session_id=turn.session_id)
                return verdict.answer, not verdict.has_whole_answer
            case Section.TOOL_CALLS:
                log = tool_log(look.own, verdict.tool_calls)
                return log, not (verdict.is_over and look.is_whole)
            case Section.STRUCTURED_OUTPUT:
                return await self._structures.structured_text(turn, verdict.answer), False
            case Section.DIFF:
                found = await self._changes(client, look)
                return found.changes, found.is_behind or not verdict.is_over

    async def _changes(self, client: OpencodeClient, look: _Look) -> FoundChanges:
        """Return what the turn changed; just after its end, wait for OpenCode to write it down."""
        turn, own, is_over = look.turn, look.own, look.verdict.is_over
        found = changes_of(own)
        until = (turn.finished_at or self._clock.now()) + timedelta(seconds=DIFF_SETTLE_S)
        while is_over and found.is_kept and (found.is_behind or not found.is_told):
            if self._clock.now() >= until:
                break
            await self._clock.sleep(DIFF_POLL_S)
            own = [await _anew(client, message) for message in own]
            found = changes_of(own)
        if found.is_kept is False:
            msg = (
                "OpenCode keeps diffs only of folders in git, and this session's is in none: its"
                " tool-calls section and filesChanged of opencode-status tell what was written"
            )
            raise OutputUnavailableError(msg, session_id=turn.session_id)
        if not is_over and not (found.is_kept and found.is_told):
            raise _not_ready(turn, "OpenCode writes its diff when it is over")
        if not found.is_told:
            msg = f"OpenCode wrote no diff of turn {turn.number}"
            raise OutputUnavailableError(msg, session_id=turn.session_id)
        return found

    async def _refuse_gone(self, connection: Connection, session: Session) -> NoReturn:
        """Say why OpenCode does not know the session; see `whose_data` for what a 404 proves."""
        if await self._store.resolve(session.id) is None:
            msg = f"session {session.id} was ended just now"
            raise SessionNotFoundError(msg) from None
        await refuse_foreign_data(self._store, connection, session, lambda: None)
        msg = "OpenCode does not have this session any more: it was deleted there"
        raise OutputUnavailableError(msg, session_id=session.id) from None


async def _anew(client: OpencodeClient, message: WholeMessage) -> WholeMessage:
    """Read a user message again: it is on these that a diff appears."""
    if message.info.role != "user":
        return message
    try:
        return await client.whole_message(message.info.session_id, message.info.id)
    except OpencodeNotFoundError:
        return message


def _key(turn: Turn, section: Section, which: str) -> tuple[str, ...]:
    return ("output", turn.session_id, str(turn.number), section.value, which)


def _is_on_record_as_over(session: Session, turn: Turn) -> bool:
    return turn.finished_at is not None or turn.number < session.turn_count


def _not_ready(turn: Turn, why: str) -> OutputNotReadyError:
    msg = (
        f"turn {turn.number} is not over yet, and {why}: wait for it with opencode-status and"
        " wait-seconds"
    )
    return OutputNotReadyError(msg, session_id=turn.session_id)

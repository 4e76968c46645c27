"""Where sessions stand: one of them in full, or a page of them at a glance."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from opencode_mcp.engine.instances import Connection
from opencode_mcp.engine.quarantine import free_if_settled
from opencode_mcp.engine.sharing import SharedReads
from opencode_mcp.engine.together import together
from opencode_mcp.errors import InstanceUnreachableError, StaleSessionError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode_errors import OpencodeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.engine.instances import Instances
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.keepers import Keepers
    from opencode_mcp.engine.outcome import Verdict
    from opencode_mcp.opencode.models import PermissionRequest, QuestionRequest
    from opencode_mcp.records import Session, Turn
    from opencode_mcp.store.store import Store

    #: the ids of busy sessions, and all that waits for an answer
    FolderState: TypeAlias = tuple[set[str], list[PermissionRequest | QuestionRequest]]

LineStatus: TypeAlias = Literal[
    "running", "waiting_for_approval", "idle", "ending", "quarantined", "unknown"
]


@dataclass(frozen=True, slots=True)
class View:
    """One session as it is known now. `verdict` None: no turn, or OpenCode cannot be asked."""

    session: Session
    turn: Turn | None
    verdict: Verdict | None
    #: why OpenCode cannot be asked; None: it was asked
    unknown_because: str | None = None
    #: observes the turn from here on; None: it is over, or cannot be observed
    keeper: Keeper | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One session in a list. `status` is the contract's word for it."""

    session: Session
    status: LineStatus
    pending_count: int


class Overview:
    """Reads where sessions stand. Changes nothing, but for the evidence that frees a session."""

    def __init__(self, *, store: Store, instances: Instances, keepers: Keepers) -> None:
        self._store = store
        self._instances = instances
        self._keepers = keepers
        self._folders: SharedReads[FolderState] = SharedReads()
        self._pages: SharedReads[tuple[list[Line], int]] = SharedReads()

    async def close(self) -> None:
        """Stop reading."""
        await self._pages.close()
        await self._folders.close()

    async def view(self, session: Session) -> View:
        """Return where the session's newest turn stands, read now.

        A turn that runs is observed from here on, so that its time limit is kept.
        """
        turn = await self._store.turn(session.id, session.turn_count)
        if turn is None or session.phase is Phase.ENDING:  # the row tells where its end stands
            return View(session, turn, None)
        keeper = self._keepers.get(session.id)
        known = keeper is not None and keeper.turn.number == turn.number
        if keeper is not None and known and keeper.verdict.is_over:
            return View(session, keeper.turn, keeper.verdict)
        try:
            reached = await self._instances.of(session)
            if keeper is not None and known and keeper.connection is reached.connection:
                keeper.observer.session = reached.session  # as it is wanted now, e.g. ended
                verdict = await keeper.refresh()
                session = await free_if_settled(self._store, keeper.observer, moved=reached.moved)
                watched = keeper if session.phase is Phase.ACTIVE else None
                return View(session, keeper.turn, verdict, keeper=watched)
            keeper = self._keepers.make(reached.connection, reached.session, turn)
            keeper.observer.proven_over |= reached.moved
            verdict = await keeper.observer.look_until_clear()
            session = await free_if_settled(self._store, keeper.observer, moved=reached.moved)
            return await self._seen(session, keeper, verdict)
        except (InstanceUnreachableError, OpencodeError) as error:
            return View(session, turn, None, unknown_because=str(error))

    async def glance(self, session: Session) -> View:
        """Return where the newest turn stands, read now; starts nothing and observes nothing."""
        turn = await self._store.turn(session.id, session.turn_count)
        if turn is None or session.phase is Phase.ENDING:
            return View(session, turn, None)
        try:
            found = await self._instances.glance(session)
            if not isinstance(found, Connection):
                because = "its OpenCode has ended; the next one is asked when it is needed"
                return View(session, turn, None, unknown_because=because)
            verdict = await self._keepers.make(found, session, turn).observer.look_until_clear()
        except (InstanceUnreachableError, OpencodeError) as error:
            return View(session, turn, None, unknown_because=str(error))
        return View(session, turn, verdict)

    async def _seen(self, session: Session, keeper: Keeper, verdict: Verdict) -> View:
        """Take the turn up if it runs, cross it out if it is over; return the view of it."""
        if session.phase is not Phase.ACTIVE:
            return View(session, keeper.turn, verdict)
        if not verdict.is_over:
            taken = await self._keepers.take_up(keeper)
            if taken is not keeper:  # the finisher was first, and may have read nothing yet
                verdict = await taken.refresh()
            return View(session, taken.turn, verdict, keeper=taken)
        if keeper.turn.finished_at is None:
            with suppress(StaleSessionError):  # its session has just ended
                await self._store.finish_turn(keeper.turn)
        return View(session, keeper.turn, verdict)

    async def page(self, owner: str | None, *, offset: int, limit: int) -> tuple[list[Line], int]:
        """Return a page, the newest used first, and how many there are; `owner` None: of all."""

        async def read() -> tuple[list[Line], int]:
            sessions, total = await self._store.sessions(owner, offset=offset, limit=limit)
            return await self._lines(sessions), total

        return await self._pages.get((owner, offset, limit), read)

    async def _lines(self, sessions: Sequence[Session]) -> list[Line]:
        """Return a line for each session; OpenCode is asked once per instance and folder."""
        groups: dict[tuple[str, str], list[Session]] = {}
        for session in sessions:
            groups.setdefault((session.instance_id, session.directory), []).append(session)
        lines = await together(*(self._group(group) for group in groups.values()))
        by_id = {line.session.id: line for group in lines for line in group}
        return [by_id[session.id] for session in sessions]

    async def _group(self, group: list[Session]) -> list[Line]:
        busy: set[str] = set()
        asks: list[PermissionRequest | QuestionRequest] = []
        fallback: LineStatus = "idle"
        try:
            found = await self._instances.glance(group[0])
            if isinstance(found, Connection):
                busy, asks = await self._read_folder(found, group[0].directory)
        except (InstanceUnreachableError, OpencodeError):
            fallback = "unknown"
        return [_line(session, busy, asks, fallback) for session in group]

    async def _read_folder(self, connection: Connection, directory: str) -> FolderState:
        """Return what runs and what waits in a folder; read once for all calls that want it."""
        key = (connection.instance.id, directory)
        return await self._folders.get(key, lambda: _read_folder(connection, directory))


async def _read_folder(connection: Connection, directory: str) -> FolderState:
    statuses, permissions, questions = await together(
        connection.client.statuses(directory),
        connection.client.permissions(directory),
        connection.client.questions(directory),
    )
    return set(statuses), [*permissions, *questions]


def _line(
    session: Session,
    busy: set[str],
    asks: Sequence[PermissionRequest | QuestionRequest],
    fallback: LineStatus,
) -> Line:
    pending = sum(1 for ask in asks if ask.session_id == session.id)
    status = fallback
    if session.phase is Phase.ENDING:
        status = "ending"
    elif session.phase is Phase.QUARANTINED:
        status = "quarantined"
    elif session.id in busy:
        status = "waiting_for_approval" if pending else "running"
    return Line(session, status, pending)

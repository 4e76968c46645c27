"""Begin turns: the first one with its session, and every further one.

What must hold whatever happens in between: the intent is written down before the request that
acts on it, a prompt is never sent twice, and no turn starts beside another one.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from opencode_mcp.engine.admission import check_choice
from opencode_mcp.engine.ids import check_session_id, new_message_id, new_token
from opencode_mcp.engine.keeper import Keeper
from opencode_mcp.engine.reading import Tree, read_asks, read_tree
from opencode_mcp.engine.recovery import TOKEN_KEY, find_start
from opencode_mcp.engine.sandboxes import denied_permissions
from opencode_mcp.errors import (
    OpencodeError,
    OpencodeNotFoundError,
    SessionBusyError,
    SessionCapacityError,
    StaleSessionError,
    SubmissionUnconfirmedError,
)
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode.client import Prompt
from opencode_mcp.records import Session, StartIntent, Submission, Turn

if TYPE_CHECKING:
    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.instances import Connection, Instances
    from opencode_mcp.engine.keepers import Keepers
    from opencode_mcp.engine.requests import ReplyRequest, StartRequest
    from opencode_mcp.opencode.models import RemoteSession
    from opencode_mcp.store.store import Store

#: how often, and how long apart, a prompt whose answer was lost is looked for
_LOOKS = 8
_LOOK_GAP_S = 0.25


class Turns:
    """Begins turns. `max_sessions` is the ceiling of tracked sessions for one owner."""

    def __init__(  # noqa: PLR0913 - the parts it works with, all by keyword
        self,
        *,
        store: Store,
        instances: Instances,
        keepers: Keepers,
        clock: Clock,
        max_sessions: int,
        approval_timeout_s: float,
    ) -> None:
        self._store = store
        self._instances = instances
        self._keepers = keepers
        self._clock = clock
        self._max_sessions = max_sessions
        self._approval_timeout_s = approval_timeout_s

    async def start(self, request: StartRequest, directory: str) -> Keeper:
        """Create and track a session, send its first prompt, and return the turn's keeper.

        Raises SessionCapacityError, InvalidArgumentError (model, agent), OpencodeError, and
        SubmissionUnconfirmedError when the prompt's fate is unknown; the session is tracked then.
        """
        if await self._store.count_sessions(request.owner) >= self._max_sessions:
            msg = (
                f"{self._max_sessions} tracked sessions are the most here: end some (opencode-end)"
            )
            raise SessionCapacityError(msg)
        connection = await self._instances.own()
        await check_choice(connection.client, directory, model=request.model, agent=request.agent)
        start = StartIntent(
            token=new_token(),
            owner=request.owner,
            instance_id=connection.instance.id,
            directory=directory,
            created_at=self._clock.now(),
        )
        await self._store.record_start(start)
        remote = await self._create(connection, start, request)
        session = self._session(request, connection, remote)
        turn = self._turn(session.id, 1, boundary=None, timeout_s=request.timeout_s)
        await self._store.track(start.token, session, turn)
        tracked = await self._store.resolve(session.id)
        return await self._submit(connection, tracked or session, turn, request.prompt)

    async def reply(self, request: ReplyRequest, session: Session) -> Keeper:
        """Send another prompt to an idle session and return the turn's keeper.

        Raises SessionBusyError, InstanceUnreachableError, and what `start` raises.
        """
        self._refuse_unless_active(session)
        reached = await self._instances.of(session)
        connection, session = reached.connection, reached.session
        await check_choice(
            connection.client, session.directory, model=request.model, agent=request.agent
        )
        await self._refuse_if_running(connection, session, moved=reached.moved)
        newest = await connection.client.messages(session.id, limit=1)
        turn = self._turn(
            session.id,
            session.turn_count + 1,
            boundary=newest.messages[-1].info.id if newest.messages else None,
            timeout_s=request.timeout_s,
        )
        try:
            session = await self._store.begin_turn(
                session,
                turn,
                model=request.model,
                agent=request.agent,
                variant=request.variant,
                developer_instructions=request.developer_instructions,
            )
        except StaleSessionError as error:
            msg = f"session {session.id} was changed by another call at this moment: look again"
            raise SessionBusyError(msg, session_id=session.id) from error
        return await self._submit(connection, session, turn, request.prompt)

    async def _create(
        self, connection: Connection, start: StartIntent, request: StartRequest
    ) -> RemoteSession:
        """Create the session; a lost answer is settled by looking for the start's token."""
        try:
            remote = await connection.client.create_session(
                start.directory,
                title=request.title,
                metadata={TOKEN_KEY: start.token},
                denied=denied_permissions(request.sandbox, request.approval_policy),
            )
        except OpencodeError as error:
            if not error.outcome_unknown:
                await self._store.drop_start(start.token)
                raise
            found = await self._found(connection, start)
            if found is None:
                raise
            remote = found
        check_session_id(remote.id)
        return remote

    @staticmethod
    async def _found(connection: Connection, start: StartIntent) -> RemoteSession | None:
        try:
            return await find_start(connection.client, start)
        except OpencodeError:  # the first fault is the one to tell
            return None

    def _session(
        self, request: StartRequest, connection: Connection, remote: RemoteSession
    ) -> Session:
        now = self._clock.now()
        return Session(
            id=remote.id,
            owner=request.owner,
            instance_id=connection.instance.id,
            directory=remote.directory,  # as OpenCode has it: every later call names it (B09)
            phase=Phase.ACTIVE,
            version=1,
            created_at=now,
            updated_at=now,
            title=request.title,
            model=request.model,
            agent=request.agent,
            variant=request.variant,
            base_instructions=request.base_instructions,
            developer_instructions=request.developer_instructions,
            sandbox=request.sandbox,
            approval_policy=request.approval_policy,
        )

    def _turn(
        self, session_id: str, number: int, *, boundary: str | None, timeout_s: float
    ) -> Turn:
        now = self._clock.now()
        return Turn(
            session_id=session_id,
            number=number,
            message_id=new_message_id(),
            boundary=boundary,
            submission=Submission.RECORDED,
            created_at=now,
            deadline_at=now + timedelta(seconds=timeout_s),
        )

    def _refuse_unless_active(self, session: Session) -> None:
        if session.phase is Phase.ACTIVE:
            return
        what = "is being ended" if session.phase is Phase.ENDING else "is quarantined"
        msg = (
            f"session {session.id} {what}: it takes no prompt. opencode-status tells where it"
            " stands, opencode-end ends it."
        )
        raise SessionBusyError(msg, session_id=session.id)

    async def _refuse_if_running(
        self, connection: Connection, session: Session, *, moved: bool
    ) -> None:
        """Raise SessionBusyError while a turn runs; then clear what an earlier one left."""
        client = connection.client
        keeper = self._keepers.get(session.id)
        running = keeper is not None and not keeper.verdict.is_over
        statuses, tree = await asyncio.gather(
            client.statuses(session.directory), read_tree(client, session, timeout_s=None)
        )
        if not running and session.id not in statuses and keeper is None and not moved:
            running = await self._is_about_to_run(connection, session)
        if running or session.id in statuses:
            msg = (
                f"a turn of session {session.id} is running: wait for it with opencode-status, or"
                " end the session with opencode-end"
            )
            raise SessionBusyError(msg, session_id=session.id)
        await self._clear_leftovers(connection, tree)

    async def _is_about_to_run(self, connection: Connection, session: Session) -> bool:
        """Whether another process's newest prompt was accepted a moment ago and is not seen yet."""
        turn = await self._store.turn(session.id, session.turn_count)
        if turn is None or turn.submission is Submission.REFUSED:
            return False
        keeper = self._keeper(connection, session, turn)
        age_s = (self._clock.now() - turn.created_at).total_seconds()
        return not (await keeper.look()).is_over and 0 <= age_s < _LOOKS

    async def _clear_leftovers(self, connection: Connection, tree: Tree) -> None:
        """Reject asks that an earlier turn left behind: aborts leave them listed (facts 5.5)."""
        client = connection.client
        asks = await read_asks(client, tree, timeout_s=None)
        for permission in asks.permissions:
            await client.reject_permission(permission.id, tree.directory_of[permission.session_id])
        for question in asks.questions:
            await client.reject_question(question.id, tree.directory_of[question.session_id])

    async def _submit(
        self, connection: Connection, session: Session, turn: Turn, prompt: str
    ) -> Keeper:
        """Send the prompt and return the keeper that observes its turn."""
        keeper = self._keeper(connection, session, turn)
        with self._keepers.beginning(keeper) as observe:
            try:
                await connection.client.prompt_async(session.id, _prompt(session, turn, prompt))
            except OpencodeError as error:
                if not error.outcome_unknown:
                    await self._store.set_submission(turn, Submission.REFUSED)
                    raise
                await self._look_for(connection, session, turn, error)
            observe()
        return keeper

    def _keeper(self, connection: Connection, session: Session, turn: Turn) -> Keeper:
        return Keeper(
            connection,
            session,
            turn,
            store=self._store,
            instances=self._instances,
            clock=self._clock,
            approval_timeout_s=self._approval_timeout_s,
        )

    async def _look_for(
        self, connection: Connection, session: Session, turn: Turn, lost: OpencodeError
    ) -> None:
        """Settle a lost answer by reading our own message; quarantine the session in doubt."""
        for _ in range(_LOOKS):
            try:
                await connection.client.message(session.id, turn.message_id)
            except OpencodeNotFoundError:
                await self._clock.sleep(_LOOK_GAP_S)
            except OpencodeError:
                break
            else:
                return
        current = await self._store.resolve(session.id)
        if current is not None and current.phase is Phase.ACTIVE:
            await self._store.move(current, Phase.QUARANTINED)
        msg = (
            f"the prompt was sent to session {session.id} and OpenCode's answer was lost, so it may"
            " or may not run. Do not send it again: opencode-status looks again, opencode-end ends"
            " the session."
        )
        raise SubmissionUnconfirmedError(msg, session_id=session.id) from lost


def _prompt(session: Session, turn: Turn, text: str) -> Prompt:
    """Compose the prompt. OpenCode appends `system` to its own system prompt (facts 2.6)."""
    parts = [session.base_instructions, session.developer_instructions]
    return Prompt(
        message_id=turn.message_id,
        text=text,
        model=session.model,
        agent=session.agent,
        variant=session.variant,
        system="\n\n".join(part for part in parts if part) or None,
    )

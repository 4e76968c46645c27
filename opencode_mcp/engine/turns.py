"""Begin turns: the first one with its session, and every further one.

What must hold whatever happens in between: the intent is written down before the request that
acts on it, a prompt is never sent twice, and no turn starts beside another one.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from opencode_mcp.engine import telling
from opencode_mcp.engine.admission import check_choice, warm
from opencode_mcp.engine.ids import check_session_id, new_message_id, new_token
from opencode_mcp.engine.model_names import with_full_model
from opencode_mcp.engine.reading import Tree, read_asks, read_tree
from opencode_mcp.engine.recovery import TOKEN_KEY, find_start
from opencode_mcp.engine.sandboxes import denied_permissions
from opencode_mcp.engine.submitting import Submitter
from opencode_mcp.engine.together import together
from opencode_mcp.errors import RunCapacityError, SessionBusyError, StaleSessionError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.log_events import concerning
from opencode_mcp.opencode_errors import OpencodeError
from opencode_mcp.records import AnsweredBy, Session, StartIntent, Submission, Turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.instances import Connection, Instances
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.keepers import Keepers
    from opencode_mcp.engine.requests import ReplyRequest, StartRequest
    from opencode_mcp.opencode.models import RemoteSession
    from opencode_mcp.records import Capacity
    from opencode_mcp.store.store import Store

#: so old, a turn that another process began and that shows nowhere will not begin any more
_YOUNG_S = 10.0
#: how often, and how far apart, a free place is looked for before a turn is refused
_LOOKS = 5
_LOOK_GAP_S = 0.1

T = TypeVar("T")


class Turns:
    """Begins turns, within the operator's ceilings."""

    def __init__(
        self,
        *,
        store: Store,
        instances: Instances,
        keepers: Keepers,
        clock: Clock,
        capacity: Capacity,
    ) -> None:
        self._store = store
        self._instances = instances
        self._keepers = keepers
        self._clock = clock
        self._capacity = capacity
        self._submitter = Submitter(store=store, keepers=keepers, clock=clock)

    async def start(self, request: StartRequest, directory: str) -> Keeper:
        """Create and track a session, send its first prompt, and return the turn's keeper.

        Raises SessionCapacityError, RunCapacityError, InvalidArgumentError (model, agent),
        OpencodeError, and SubmissionUnconfirmedError when the prompt's fate is unknown; the
        session is tracked then.
        """
        connection = await self._instances.own()
        async with self._instances.folders.starting(connection):
            start, request = await self._admit(connection, request, directory)
        remote = await self._create(connection, start, request)
        session = self._session(request, connection, remote)
        turn = self._turn(session.id, 1, request, boundary=None)
        with self._keepers.submitting(session.id), concerning(**telling.ids_of(session, turn)):
            await self._store.track(start.token, session, turn, request.claim)
            telling.session_started(session)
            tracked = await self._store.resolve(session.id) or session
            return await self._submitter.submit(connection, tracked, turn, request.prompt)

    async def _admit(
        self, connection: Connection, request: StartRequest, directory: str
    ) -> tuple[StartIntent, StartRequest]:
        """Make sure of folder, model and agent, and write the start down."""
        await warm(connection, directory)
        request = await with_full_model(connection.client, directory, request)
        await check_choice(connection.client, directory, model=request.model, agent=request.agent)
        start = StartIntent(
            token=new_token(),
            owner=request.owner,
            instance_id=connection.instance.id,
            directory=directory,
            created_at=self._clock.now(),
        )
        await self._with_room(lambda: self._store.record_start(start, self._capacity))
        return start, request

    async def reply(self, request: ReplyRequest, session: Session) -> Keeper:
        """Send another prompt to an idle session and return the turn's keeper.

        Raises SessionBusyError, InstanceUnreachableError, and what `start` raises but for
        SessionCapacityError.
        """
        self._refuse_unless_active(session)
        reached = await self._instances.of(session)
        connection, session = reached.connection, reached.session
        await warm(connection, session.directory)
        await check_choice(
            connection.client, session.directory, model=request.model, agent=request.agent
        )
        await self._refuse_if_running(connection, session, moved=reached.moved)
        newest = await connection.client.messages(session.id, limit=1)
        turn = self._turn(
            session.id,
            session.turn_count + 1,
            request,
            boundary=newest.messages[-1].info.id if newest.messages else None,
        )
        with self._keepers.submitting(session.id), concerning(**telling.ids_of(session, turn)):
            session = await self._begin(session, turn, request)
            return await self._submitter.submit(connection, session, turn, request.prompt)

    async def _begin(self, session: Session, turn: Turn, request: ReplyRequest) -> Session:
        begin = partial(
            self._store.begin_turn,
            session,
            turn,
            model=request.model,
            agent=request.agent,
            variant=request.variant,
            developer_instructions=request.developer_instructions,
            capacity=self._capacity,
            claim=request.claim,
        )
        try:
            return await self._with_room(begin)
        except StaleSessionError as error:
            msg = f"session {session.id} was changed by another call at this moment: look again"
            raise SessionBusyError(msg, session_id=session.id) from error

    async def _with_room(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do what takes a turn's place; wait for one that is about to be free.

        That a turn is over is written down just after its caller is told, and that caller, or one
        at another process, may come at once. Raises RunCapacityError.
        """
        for _ in range(_LOOKS):
            try:
                return await work()
            except RunCapacityError:
                await self._clock.sleep(_LOOK_GAP_S)
        return await work()

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
        self,
        session_id: str,
        number: int,
        request: StartRequest | ReplyRequest,
        *,
        boundary: str | None,
    ) -> Turn:
        now = self._clock.now()
        return Turn(
            session_id=session_id,
            number=number,
            message_id=new_message_id(),
            boundary=boundary,
            submission=Submission.RECORDED,
            created_at=now,
            deadline_at=now + timedelta(seconds=request.timeout_s),
            holder=self._keepers.holder,
            output_schema=request.output_schema,
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
        if keeper is not None and keeper.turn.number < session.turn_count:
            keeper = None  # it knows nothing of the newest turn
        running = self._keepers.is_submitting(session.id)
        running |= keeper is not None and not keeper.verdict.is_over
        statuses, tree = await together(
            client.statuses(session.directory), read_tree(client, session, timeout_s=None)
        )
        if not running and session.id not in statuses and keeper is None and not moved:
            running = await self._is_about_to_run(connection, session)
        if running or session.id in statuses:
            msg = (
                f"a turn of session {session.id} is running: wait for it with opencode-status,"
                " stop it with opencode-cancel, or end the session with opencode-end"
            )
            raise SessionBusyError(msg, session_id=session.id)
        await self._clear_leftovers(connection, tree)

    async def _is_about_to_run(self, connection: Connection, session: Session) -> bool:
        """Whether another process's newest prompt was accepted a moment ago and is not seen yet."""
        turn = await self._store.turn(session.id, session.turn_count)
        if turn is None or turn.submission is Submission.REFUSED:
            return False
        if turn.finished_at is not None:
            return False
        keeper = self._keepers.make(connection, session, turn)
        age_s = (self._clock.now() - turn.created_at).total_seconds()
        return not (await keeper.observer.look()).is_over and 0 <= age_s < _YOUNG_S

    async def _clear_leftovers(self, connection: Connection, tree: Tree) -> None:
        """Reject asks that an earlier turn left behind: aborts leave them listed (facts 5.5)."""
        client = connection.client
        asks = await read_asks(client, tree, timeout_s=None)
        for permission in asks.permissions:
            directory = tree.directory_of[permission.session_id]
            if await client.reject_permission(permission.id, directory):
                telling.ask_answered({}, permission, AnsweredBy.LEFTOVER, allowed=False)
        for question in asks.questions:
            directory = tree.directory_of[question.session_id]
            if await client.reject_question(question.id, directory):
                telling.ask_answered({}, question, AnsweredBy.LEFTOVER, allowed=False)

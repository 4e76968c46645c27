"""What the service can do, as one object: start, reply, observe, list, end.

Every method takes the caller's principal and treats what is not theirs as unknown.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from opencode_mcp.engine.approving import answer_by_caller, check_answerable
from opencode_mcp.engine.cancelling import Canceller
from opencode_mcp.engine.catalogue import Catalogue
from opencode_mcp.engine.closing import CHANGED_BY_S
from opencode_mcp.engine.ending import Ender
from opencode_mcp.engine.ends import Unconfirmed, answer_of, how_it_ended
from opencode_mcp.engine.finisher import Finisher, IdleRule
from opencode_mcp.engine.keepers import Keepers
from opencode_mcp.engine.leases import Leases
from opencode_mcp.engine.leaving import Leaver
from opencode_mcp.engine.outputs import Outputs, TurnOutput
from opencode_mcp.engine.overview import Line, Overview, View
from opencode_mcp.engine.owning import Owning
from opencode_mcp.engine.repeating import Repeats
from opencode_mcp.engine.snapshots import Snapshots
from opencode_mcp.engine.structured import Structures
from opencode_mcp.engine.turns import Turns
from opencode_mcp.errors import PolicyNotAllowedError, SessionNotFoundError, ShuttingDownError

if TYPE_CHECKING:
    from collections.abc import Callable

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.answers import Answer
    from opencode_mcp.engine.cancelling import Cancelled
    from opencode_mcp.engine.closing import Closing
    from opencode_mcp.engine.ends import Ended
    from opencode_mcp.engine.instances import Instances
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.limits import EngineLimits
    from opencode_mcp.engine.requests import ReplyRequest, StartRequest
    from opencode_mcp.engine.sections import Section
    from opencode_mcp.records import EndAction, Principal, Session
    from opencode_mcp.store.store import Store


class Engine:
    """Starts, watches and ends sessions. One for each process."""

    def __init__(  # noqa: PLR0913 - the parts it works with, all by keyword
        self,
        *,
        store: Store,
        instances: Instances,
        clock: Clock,
        closing: Closing,
        limits: EngineLimits,
        holder: str,
        is_dead_holder: Callable[[str], bool],
        carries_on: bool = True,
    ) -> None:
        """`carries_on`: whether it takes up, in the background, what is left unfinished."""
        self.clock = clock
        self._carries_on = carries_on
        self.limits = limits
        #: tells whoever watches that this process is about to exit
        self.closing = closing
        self._store = store
        self._instances = instances
        self._keepers = self._new_keepers(holder, is_dead_holder)
        self._stack = AsyncExitStack()
        #: what may be chosen from
        self.catalogue = Catalogue(instances)
        #: checks what callers ask of an answer, and judges what came of it
        self.structures = Structures(closing)
        self._overview = Overview(store=store, instances=instances, keepers=self._keepers)
        self._outputs = Outputs(
            store, instances, self._overview, clock, Snapshots(), self.structures
        )
        self._canceller = Canceller(
            store=store, instances=instances, keepers=self._keepers, clock=clock, closing=closing
        )
        self._turns = self._new_turns()
        #: which call owns a turn, also where several have one request-id
        self.owning = self._new_owning()
        leases = Leases(store=store, clock=clock, holder=holder, is_dead=is_dead_holder)
        self._ender, self._finisher, self._leaver = self._parts_of_ends(store, instances, leases)

    def _new_keepers(self, holder: str, is_dead_holder: Callable[[str], bool]) -> Keepers:
        return Keepers(
            store=self._store,
            instances=self._instances,
            clock=self.clock,
            holder=holder,
            is_dead_holder=is_dead_holder,
            approval_timeout_s=self.limits.approval_timeout_s,
            loop_limit=self.limits.response_loop_limit,
        )

    def _new_turns(self) -> Turns:
        return Turns(
            store=self._store,
            instances=self._instances,
            keepers=self._keepers,
            clock=self.clock,
            capacity=self.limits.capacity,
        )

    def _new_owning(self) -> Owning:
        return Owning(
            repeats=Repeats(
                store=self._store,
                instances=self._instances,
                keepers=self._keepers,
                overview=self._overview,
                clock=self.clock,
            ),
            keepers=self._keepers,
            closing=self.closing,
            abort_on_call_cancel=self.limits.abort_on_call_cancel,
        )

    def _parts_of_ends(
        self, store: Store, instances: Instances, leases: Leases
    ) -> tuple[Ender, Finisher, Leaver]:
        """Make what ends sessions: when asked, in the background, and at exit."""
        limits = self.limits
        ender = Ender(
            store=store,
            instances=instances,
            keepers=self._keepers,
            leases=leases,
            clock=self.clock,
            cleanup_timeout_s=limits.cleanup_timeout_s,
        )
        finisher = Finisher(
            store=store,
            instances=instances,
            keepers=self._keepers,
            ender=ender,
            leases=leases,
            clock=self.clock,
            idle_rule=IdleRule(limits.idle_ttl, limits.default_end_action),
        )
        leaver = Leaver(
            store=store,
            keepers=self._keepers,
            ender=ender,
            closing=self.closing,
            action=limits.on_exit,
            end_action=limits.default_end_action,
        )
        return ender, finisher, leaver

    async def __aenter__(self) -> Self:
        """Open what the engine works with, and carry on what was left unfinished."""
        await self._stack.enter_async_context(self._instances)
        self._stack.push_async_callback(self._overview.close)
        self._stack.push_async_callback(self.catalogue.close)
        self._stack.push_async_callback(self.structures.close)
        await self._stack.enter_async_context(self._leaver)
        if self._carries_on:
            await self._stack.enter_async_context(self._finisher)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Take no new work, part with the turns of this process, let go of the instances."""
        self.closing.begin(refuse=True)
        await self._stack.aclose()

    async def start(self, request: StartRequest, directory: str) -> Keeper:
        """Start a session in `directory` and its first turn; see `Turns.start`."""
        self.closing.check_open()
        await self.structures.check(request.output_schema)
        return await self.owning.begin(self._turns.start(request, directory))

    async def reply(self, request: ReplyRequest) -> Keeper:
        """Run another turn; see `Turns.reply`. Raises SessionNotFoundError."""
        self.closing.check_open()
        session = await self._own(request.session_id, request.asker)
        await self.structures.check(request.output_schema)
        return await self.owning.begin(self._turns.reply(request, session))

    async def view(self, reference: str, asker: Principal) -> View:
        """Return where a session stands. Raises SessionNotFoundError."""
        view = await self._overview.view(await self.find(reference, asker))
        return await self.structures.seen(view)

    async def approve(
        self, reference: str, asker: Principal, approval_id: str, answer: Answer
    ) -> View:
        """Answer an ask and return where its turn stands then; see `answer_by_caller`."""
        session = await self._own(reference, asker)
        check_answerable(session)
        view = await self._overview.view(session)
        # once more, after the reads: it may be ending by now, or tracking may be lost
        check_answerable(await self.find(reference, asker))
        keeper = self._keepers.get(session.id)
        if await answer_by_caller(view, keeper, approval_id, answer):
            return await self.view(session.id, asker)
        return await self.structures.seen(view)

    async def glance(self, reference: str, asker: Principal) -> View:
        """Return where a session stands, and begin nothing. Raises SessionNotFoundError."""
        return await self._overview.glance(await self.find(reference, asker))

    async def output(
        self, reference: str, asker: Principal, turn: int, section: Section, wanted: str | None
    ) -> TurnOutput:
        """Return what a turn left; see `Outputs.read`. Raises SessionNotFoundError."""
        session = await self.find(reference, asker)
        return await self._outputs.read(session, turn, section, wanted)

    @property
    def opencode_version(self) -> str | None:
        """The version of the OpenCode that new sessions run in; None: nobody needed it yet."""
        return self._instances.version

    async def page(
        self, asker: Principal, *, offset: int, limit: int, owner: str | None = None
    ) -> tuple[list[Line], int]:
        """Return a page of what they see, the newest used first, and how many there are.

        `owner`: only this one's, for who sees all.
        """
        owner = owner if asker.sees_all else asker.name
        return await self._overview.page(owner, offset=offset, limit=limit)

    async def end(
        self, reference: str, asker: Principal, action: EndAction | None
    ) -> Ended | Unconfirmed:
        """End a session; see `Ender.end`. Raises SessionNotFoundError, EndConflictError."""
        session = await self.find(reference, asker)
        default = self.limits.default_end_action
        end = await self.closing.until(self._ender.end(session, action, default), CHANGED_BY_S)
        if end is not None:
            return end
        tombstone = await self._store.tombstone(session.id)
        if tombstone is not None:
            return answer_of(tombstone)
        current = await self._store.resolve(session.id)
        if current is None or current.ending is None:
            msg = "this server is shutting down, and the end was not recorded: ask for it again"
            raise ShuttingDownError(msg, session_id=session.id)
        reason = "this server is shutting down; the end is recorded and the next start goes on"
        return Unconfirmed(session.id, current.ending.action, reason, None)

    async def cancel(
        self, reference: str, asker: Principal, message_id: str | None, wait_s: float
    ) -> Cancelled | None:
        """Ask a turn to stop; see `Canceller.cancel`. Raises SessionNotFoundError."""
        session = await self.find(reference, asker)
        cancelled = await self._canceller.cancel(session, message_id, wait_s)
        return cancelled and await self.structures.seen(cancelled)

    async def find(self, reference: str, asker: Principal) -> Session:
        """Return the session with this id or alias, if it exists for who asks.

        Raises SessionNotFoundError; to its owner the text tells when and how a session ended.
        """
        session = await self._store.resolve(reference)
        if session is not None and asker.sees(session.owner):
            return session
        tombstone = await self._store.tombstone(reference)
        if tombstone is not None and asker.sees(tombstone.owner):
            how = how_it_ended(tombstone)
            msg = f"session {reference[:100]} {how}: start a new one with opencode"
        else:
            msg = (
                f"no session {reference[:100]!r} is tracked here: opencode-status without an id"
                " lists yours"
            )
        raise SessionNotFoundError(msg)

    async def _own(self, reference: str, asker: Principal) -> Session:
        """Return a session that is to be worked with. Raises as `find`, and PolicyNotAllowedError.

        An admin sees what others started, and may stop and end it (contract §1); what an agent is
        told to do stays its owner's word.
        """
        session = await self.find(reference, asker)
        if session.owner != asker.name:
            msg = (
                f"session {session.id} belongs to {session.owner}: you may look at it, stop its"
                " turn and end it, not go on with it"
            )
            raise PolicyNotAllowedError(msg, session_id=session.id)
        return session

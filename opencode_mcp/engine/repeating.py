"""Calls that may be sent again: a request-id stands for one turn, and no prompt goes out twice.

The id is claimed in the database before anything is sent, and the turn is bound to it in the
transaction that records the turn, which is also before anything is sent. So whoever finds a claim
knows: bound, there is a turn to look at; not bound and its call gone, nothing was sent and the id
is free; not bound and its call at work, wait for it.

Of the calls that share an id, the newest owns the turn: if its client cancels it, the turn may be
stopped; a call that a newer one superseded only lets go.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from opencode_mcp.engine.ends import how_it_ended
from opencode_mcp.engine.looking_back import end_of_older
from opencode_mcp.engine.overview import View
from opencode_mcp.engine.submitting import unconfirmed
from opencode_mcp.errors import (
    InstanceUnreachableError,
    OpencodeMcpError,
    RequestEndedError,
    RequestIdConflictError,
    RequestPendingError,
    StoreError,
)
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode_errors import OpencodeError
from opencode_mcp.records import RequestClaim

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.instances import Instances
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.keepers import Keepers
    from opencode_mcp.engine.overview import Overview
    from opencode_mcp.engine.requests import RepeatableCall
    from opencode_mcp.records import Session, Turn
    from opencode_mcp.store.store import Store

#: how long a request-id is remembered
REMEMBERED = timedelta(hours=24)
#: how long a repeat waits for a first call that another process is at; a start may take longer
PENDING_S = 10.0
_LOOK_GAP_S = 0.1
_UNREADABLE_GAP_S = 0.5


class Repeats:
    """Knows which turn each request-id stands for."""

    def __init__(
        self,
        *,
        store: Store,
        instances: Instances,
        keepers: Keepers,
        overview: Overview,
        clock: Clock,
    ) -> None:
        self._store = store
        self._instances = instances
        self._keepers = keepers
        self._overview = overview
        self._clock = clock
        #: calls of this process that claim an id or begin its turn now; set when they are done
        self._at_work: dict[str, asyncio.Event] = {}

    async def claim(self, call: RepeatableCall) -> RequestClaim:
        """Claim the call's request-id, or join: whose `call` is another began the turn before.

        Who claims it must begin at once (`begun`). Raises RequestIdConflictError;
        RequestPendingError if another process is at it and has recorded no turn in time.
        """
        self._at_work[call.token] = asyncio.Event()
        try:
            found = await self._claimed_or_bound(call)
        except BaseException:
            self._done(call)
            raise
        if found.call != call.token:
            self._done(call)
        return found

    async def begun(
        self, call: RepeatableCall, claim: RequestClaim, begin: Callable[[], Awaitable[Keeper]]
    ) -> Keeper:
        """Begin the turn for a claim; where nothing was sent, let go of the claim."""
        try:
            return await begin()
        except Exception:
            with suppress(StoreError):  # then the next call finds that nobody is at it
                if await self._store.release_request(claim):
                    call.expires_at = None
            raise
        finally:
            self._done(call)

    async def join(self, found: RequestClaim) -> View:
        """Return where the turn of an earlier call stands, read now.

        Raises RequestEndedError; SubmissionUnconfirmedError while its prompt's fate is unknown.
        """
        session_id, number = str(found.session_id), found.turn or 0
        session = await self._store.resolve(session_id)
        turn = await self._store.turn(session_id, number)
        if session is None or turn is None:
            raise await self._ended(found, session_id)
        if number < session.turn_count:
            return await self._older(session, turn)
        view = await self._overview.view(session)
        if view.session.phase is Phase.QUARANTINED:
            raise unconfirmed(view.session)
        return view

    async def is_superseded(self, call: RepeatableCall, keeper: Keeper) -> bool:
        """Whether a newer call has joined this turn, or it is over.

        While the database cannot be read that is asked again: who left must not be forgotten.
        """
        while not keeper.verdict.is_over:
            try:
                found = await self._store.request(call.owner, call.request_id)
            except StoreError:
                await self._clock.sleep(_UNREADABLE_GAP_S)
            else:
                return self._is_anothers(found, call, keeper)
        return True

    @staticmethod
    def _is_anothers(found: RequestClaim | None, call: RepeatableCall, keeper: Keeper) -> bool:
        if found is None or found.newest_call == call.token:
            return False
        # else it is another turn's by now: ours has expired, and with it whoever joined
        return (found.session_id, found.turn) == (keeper.session.id, keeper.turn.number)

    async def joined(self, call: RepeatableCall) -> Keeper | None:
        """Wait for the turn that a call joined as the newest, and left; None: it is not its own."""
        with suppress(OpencodeMcpError):  # the turn keeps its time limit
            # a cancelled call does not take back its claim, which may still be on its way
            found = await self._store.request_after_writes(call.owner, call.request_id)
            while found and found.newest_call == call.token and not self._is_abandoned(found):
                if await self._is_bound(found):
                    return (await self.join(found)).keeper
                found = await self._store.request(call.owner, call.request_id)
        return None

    def _done(self, call: RepeatableCall) -> None:
        self._at_work.pop(call.token).set()

    async def _claimed_or_bound(self, call: RepeatableCall) -> RequestClaim:
        over: RequestClaim | None = None
        while True:
            found = await self._store.claim_request(self._wanted(call), over)
            call.expires_at = found.expires_at
            if found.call == call.token:
                call.replayed = False
                return found
            if self._is_abandoned(found):
                over = found
                continue
            if found.digest != call.digest:
                raise _conflict(found)
            call.replayed = True
            if await self._is_bound(found):
                return found
            over = None

    async def _is_bound(self, found: RequestClaim) -> bool:
        """Wait for the call that has the id; false: look again. Raises RequestPendingError."""
        at_work = self._at_work.get(found.call)
        if at_work is not None:  # also if bound: its prompt is on its way
            await at_work.wait()
            return False
        if found.session_id is not None:
            return True
        until = self._clock.monotonic() + PENDING_S
        now: RequestClaim | None = found
        while now is not None and now.session_id is None and now.call == found.call:
            if self._is_abandoned(now):
                return False
            if self._clock.monotonic() >= until:
                raise _pending(found)
            await self._clock.sleep(_LOOK_GAP_S)
            now = await self._store.request(found.owner, found.request_id)
        return False

    def _is_abandoned(self, found: RequestClaim) -> bool:
        """Whether nothing was sent for the claim, and nobody is about to send it."""
        if found.session_id is not None or found.call in self._at_work:
            return False
        is_ours = found.holder == self._keepers.holder
        return is_ours or self._keepers.is_dead_holder(found.holder)

    def _wanted(self, call: RepeatableCall) -> RequestClaim:
        now = self._clock.now()
        return RequestClaim(
            owner=call.owner,
            request_id=call.request_id,
            digest=call.digest,
            call=call.token,
            newest_call=call.token,
            holder=self._keepers.holder,
            created_at=now,
            expires_at=now + REMEMBERED,
        )

    async def _older(self, session: Session, turn: Turn) -> View:
        if session.phase is Phase.QUARANTINED:  # for a later prompt, not for this one
            session = replace(session, phase=Phase.ACTIVE)
        try:
            session, verdict = await end_of_older(
                self._store, self._instances, self._keepers, session, turn
            )
        except (InstanceUnreachableError, OpencodeError) as error:
            return View(session, turn, None, unknown_because=str(error))
        return View(session, turn, verdict)

    async def _ended(self, found: RequestClaim, session_id: str) -> RequestEndedError:
        tombstone = await self._store.tombstone(session_id)
        how = how_it_ended(tombstone) if tombstone else "is not tracked any more"
        msg = (
            f"session {session_id}, which request-id {found.request_id[:100]} began,"
            f" {how}. Nothing was sent: to run the prompt again, use another request-id"
        )
        return RequestEndedError(msg, session_id=session_id)


def _conflict(found: RequestClaim) -> RequestIdConflictError:
    msg = (
        f"request-id {found.request_id[:100]} was used with other arguments at"
        f" {found.created_at:%Y-%m-%dT%H:%M:%SZ}. Nothing was sent: repeat that call exactly to get"
        " its answer, or use another request-id"
    )
    return RequestIdConflictError(msg, session_id=found.session_id)


def _pending(found: RequestClaim) -> RequestPendingError:
    msg = (
        f"the first call with request-id {found.request_id[:100]} is under way in another process"
        " of this server and has begun no turn yet. Nothing was sent: send the same call again in"
        " a moment"
    )
    return RequestPendingError(msg)

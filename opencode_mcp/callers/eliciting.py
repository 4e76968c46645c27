"""Ask the person behind a call, through MCP elicitation, while the call watches.

Two ways, by the era of the connection (FastMCP facts 5): in the handshake era the server asks and
waits for the answer; on 2026-07-28 the call returns what it wants to know, and the client repeats
it with the answers. The repeated call carries which turn it belongs to, sealed, and goes on with
it: it never submits a prompt.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from opencode_mcp.callers.doing import describe_ask
from opencode_mcp.callers.forms import Decision, Form, decision_of, form_of
from opencode_mcp.callers.progress import INTERVAL_S
from opencode_mcp.callers.request_ids import SealedCall, seal, unseal
from opencode_mcp.engine.outcome import TurnStatus
from opencode_mcp.errors import InvalidArgumentError, OpencodeMcpError
from opencode_mcp.log_events import Event, tell
from opencode_mcp.opencode_errors import OpencodeError
from opencode_mcp.records import AnsweredBy, ApprovalPolicy

if TYPE_CHECKING:
    from fastmcp import Context

    from opencode_mcp.callers.progress import Reporter
    from opencode_mcp.engine.answers import Ask
    from opencode_mcp.engine.approvals import Waiting
    from opencode_mcp.engine.engine import Engine
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.overview import View
    from opencode_mcp.records import Principal

log = logging.getLogger(__name__)

NO_PERSON = (
    "this client cannot ask a person through this connection (no MCP elicitation): start the"
    " session by opencode with approval-policy caller and answer with opencode-approve"
)
ASKED_TOO_OFTEN = "the person at the client cannot be asked any more in this call"
#: a client gives up after 10 repetitions of one call; then opencode-status goes on
_MAX_ROUNDS = 8
#: so long an ask that was returned to one client is not shown to another
_SHOWN_S = 60.0


class CallState(BaseModel):
    """What a repeated call brings back: which turn it belongs to, and how often it was repeated."""

    session: str
    turn: int
    rounds: int = 0
    request: SealedCall | None = None


class Person:
    """The person at the client of one call."""

    def __init__(self, context: Context, *, modern: bool) -> None:
        self._context = context
        self.modern = modern
        state = state_of(context)
        self.rounds = state.rounds if state else 0

    async def ask(self, ask: Ask, form: Form) -> Decision:
        """Show the form and return what was decided; only in the handshake era."""
        action: Literal["accept", "decline", "cancel"] = "cancel"
        content: dict[str, Any] | None = None
        try:
            result = await self._context.session.elicit_form(
                form.message, form.schema, related_request_id=self._context.request_id
            )
        except MCPError as error:  # a client that fails at it has nobody to ask
            # its text is the client's: it may quote what was asked
            tell(log, Event.PERSON_NOT_ASKED, approval_id=ask.id, code=error.error.code)
        else:
            action, content = result.action, dict(result.content or {})
        return decision_of(ask, action, content)


def person_of(context: Context) -> Person | None:
    """Return the person at this call's client; None: they cannot be asked through it."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    # a client that names neither kind can show forms: the first version of it knew nothing else
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return None
    request = context.request_context
    modern = request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS
    if not modern and not context.session.can_send_request:  # stateless HTTP: contract §2.1
        return None
    return Person(context, modern=modern)


def state_of(context: Context) -> CallState | None:
    """Return what a repeated call brought back; None for a first one.

    It was sealed by this server, for the same arguments and the same principal.
    """
    if context.request_state is None:
        return None
    try:
        return CallState.model_validate_json(context.request_state)
    except ValidationError:
        msg = "the state of this repeated call is not one of this tool's: call opencode-status"
        raise InvalidArgumentError(msg) from None


def is_for_a_person(keeper: Keeper) -> bool:
    """Whether the turn waits for what a watching call must ask a person."""
    waits = keeper.verdict.status is TurnStatus.WAITING
    return waits and keeper.session.approval_policy is ApprovalPolicy.ON_REQUEST


async def attend(
    keeper: Keeper, person: Person | None, reporter: Reporter, left_s: float
) -> InputRequiredResult | None:
    """Have one ask answered, for at most `left_s` seconds; one at a time, in all calls together.

    Returns what the call must return at once, or None: look again. What nobody can be asked is
    rejected, and so is what the person cannot be asked any more.
    """
    if person is None or not may_ask(person):
        why = NO_PERSON if person is None else ASKED_TOO_OFTEN
        with suppress(OpencodeError):  # the keeper tells of the trouble; look again
            for ask_id in list(keeper.approvals.waiting):
                client = keeper.connection.client
                await keeper.approvals.reject(client, ask_id, why, by=AnsweredBy.NO_PERSON)
            await keeper.refresh()
        return None
    waiting = keeper.approvals.next_to_show()
    if waiting is None:
        await keeper.changed(min(reporter.due_s, left_s))
        await reporter.tell_if_due("waiting for a person's answer, which another call asks for")
        return None
    if person.modern:
        return _return_ask(keeper, person, waiting, reporter)
    await _ask_and_answer(keeper, person, waiting, reporter, left_s)
    return None


def may_ask(person: Person | None) -> bool:
    """Whether this call may still return asks to its client."""
    return person is None or person.rounds < _MAX_ROUNDS


def _return_ask(
    keeper: Keeper, person: Person, waiting: Waiting, reporter: Reporter
) -> InputRequiredResult:
    form = form_of(waiting.ask, keeper.session.id)
    keeper.approvals.show(waiting.ask.id, _SHOWN_S)
    state = CallState(
        session=keeper.session.id,
        turn=keeper.turn.number,
        rounds=person.rounds + 1,
        request=seal(reporter.call),
    )
    params = ElicitRequestFormParams(message=form.message, requested_schema=form.schema)
    return InputRequiredResult(
        request_state=state.model_dump_json(),
        input_requests={waiting.ask.id: ElicitRequest(params=params)},
    )


async def _ask_and_answer(
    keeper: Keeper, person: Person, waiting: Waiting, reporter: Reporter, left_s: float
) -> None:
    """Show one ask until it is answered, gone, or this call's time is up; then take it back."""
    approvals, ask = keeper.approvals, waiting.ask
    approvals.show(ask.id, left_s + INTERVAL_S)
    asking = asyncio.ensure_future(person.ask(ask, form_of(ask, keeper.session.id)))
    try:
        async with asyncio.timeout(left_s):
            while not asking.done() and is_for_a_person(keeper) and ask.id in approvals.waiting:
                await _first_of(asking, keeper, reporter.due_s)
                await reporter.tell_if_due(f"waiting for a person: {describe_ask(ask)}")
    except TimeoutError:
        return
    finally:
        approvals.hide(ask.id)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    if not asking.cancelled():
        await _carry_out(keeper, ask.id, asking.result())


async def _first_of(asking: asyncio.Future[Decision], keeper: Keeper, timeout_s: float) -> None:
    changing = asyncio.ensure_future(keeper.changed(timeout_s))
    try:
        both: set[asyncio.Future[Decision] | asyncio.Future[bool]] = {asking, changing}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        changing.cancel()
        await asyncio.gather(changing, return_exceptions=True)


async def _carry_out(keeper: Keeper, ask_id: str, decision: Decision) -> None:
    client = keeper.connection.client
    try:
        by = AnsweredBy.PERSON
        await keeper.approvals.answer(client, ask_id, decision.answer, decision.why, by=by)
        await keeper.refresh()
    except OpencodeError as error:  # it still waits, and is asked again
        tell(log, Event.ANSWER_NOT_GIVEN, approval_id=ask_id, why=str(error))


async def resume(engine: Engine, reporter: Reporter, asker: Principal, *, owns: bool) -> View:
    """Return the turn that a repeated call goes on with, after giving the answers it brought.

    `owns`: who cancels the call meanwhile may stop the turn, as while it is watched.

    Raises SessionNotFoundError, InvalidArgumentError.
    """
    state = state_of(reporter.context)
    if state is None:
        msg = "a first call has nothing to go on with"
        raise RuntimeError(msg)
    unseal(reporter.call, state.request)
    try:
        return await _answered(engine, state, reporter, asker)
    except asyncio.CancelledError:
        if owns:
            engine.owning.left(_running(engine, state, asker), reporter.call)
        raise


async def _running(engine: Engine, state: CallState, asker: Principal) -> Keeper | None:
    """Return the turn of a call that left, if it runs."""
    with suppress(OpencodeMcpError):
        view = await engine.view(state.session, asker)
        if view.turn is not None and view.turn.number == state.turn:
            return view.keeper
    return None


async def _answered(engine: Engine, state: CallState, reporter: Reporter, asker: Principal) -> View:
    view = await engine.view(state.session, asker)
    keeper = view.keeper
    if view.turn is None or view.turn.number != state.turn:
        msg = f"turn {state.turn} of session {state.session} is over: call opencode-status"
        raise InvalidArgumentError(msg, session_id=state.session)
    if keeper is not None:
        for ask_id, response in (reporter.context.input_responses or {}).items():
            keeper.approvals.hide(ask_id)
            waiting = keeper.approvals.waiting.get(ask_id)
            if waiting is not None and isinstance(response, ElicitResult):
                decision = decision_of(waiting.ask, response.action, response.content)
                await _carry_out(keeper, ask_id, decision)
    return view

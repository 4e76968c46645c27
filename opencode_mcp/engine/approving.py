"""A caller answers an ask: only one that waits, of a turn that runs, and once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from opencode_mcp.engine.answers import check_fits
from opencode_mcp.engine.approvals import is_same
from opencode_mcp.errors import (
    ApprovalNotFoundError,
    InstanceUnreachableError,
    InvalidArgumentError,
    SessionBusyError,
)
from opencode_mcp.lifecycle import Phase
from opencode_mcp.records import AnsweredBy, ApprovalPolicy

if TYPE_CHECKING:
    from opencode_mcp.engine.answers import Answer
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.overview import View
    from opencode_mcp.records import Session


def check_answerable(session: Session) -> None:
    """Raise InvalidArgumentError or SessionBusyError unless callers answer this session's asks."""
    policy = session.approval_policy
    if policy is not ApprovalPolicy.CALLER:
        msg = (
            f"session {session.id} has approval-policy {policy.value}, so its asks are not answered"
            " by opencode-approve; start a session with approval-policy caller for that"
        )
        raise InvalidArgumentError(msg, session_id=session.id)
    if session.phase is Phase.ENDING:
        msg = f"session {session.id} is being ended: what waits in it is rejected"
        raise SessionBusyError(msg, session_id=session.id)


async def answer_by_caller(
    view: View, keeper: Keeper | None, approval_id: str, answer: Answer
) -> bool:
    """Answer one of the asks that `view` was just read with; whether anything was sent.

    False: the same was said before through this process, so it is done. Raises
    ApprovalNotFoundError, InvalidArgumentError, InstanceUnreachableError and OpencodeError.
    """
    session = view.session
    if view.verdict is None or keeper is None:
        why = view.unknown_because or "no turn of it is observed here"
        msg = f"session {session.id}: nothing was answered: {why}"
        raise InstanceUnreachableError(msg, session_id=session.id)
    if is_same(keeper.approvals.answered.get(approval_id), answer):
        return False
    waiting = keeper.approvals.waiting.get(approval_id)
    if waiting is None or view.verdict.is_over or keeper.turn.stop_reason is not None:
        _refuse(session, approval_id)
    check_fits(waiting.ask, answer)
    client = keeper.connection.client
    if not await keeper.approvals.answer(client, approval_id, answer, by=AnsweredBy.CALLER):
        _refuse(session, approval_id)
    return True


def _refuse(session: Session, approval_id: str) -> NoReturn:
    msg = (
        f"{approval_id[:100]!r} does not wait in session {session.id}: it was answered already, its"
        " time ran out, or its turn was stopped. Nothing was granted; opencode-status tells what"
        " waits now."
    )
    raise ApprovalNotFoundError(msg, session_id=session.id)

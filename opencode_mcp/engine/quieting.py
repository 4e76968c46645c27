"""Steps 4 to 6 of an end: its newest turn is stopped, what waits is rejected, and all is quiet.

What is read of the turn's messages only says how long to wait and whether a turn was cut short.
Status and lists decide, so a message that cannot be read must not keep its session from ending.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from opencode_mcp.engine.history import read_turn
from opencode_mcp.engine.outcome import Evidence, TurnStatus, judge
from opencode_mcp.engine.stopping import make_quiet, wait_until_seen
from opencode_mcp.opencode_errors import (
    OpencodeError,
    OpencodeNotFoundError,
    OpencodeTimeoutError,
    OpencodeUnauthorizedError,
)
from opencode_mcp.records import StopReason, Submission

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.engine.budget import Budget
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.stopping import Stopped
    from opencode_mcp.opencode.client import OpencodeClient
    from opencode_mcp.opencode.models import Message
    from opencode_mcp.records import Session, Turn

#: one read of a turn's messages, however many pages
_READ_S = 5.0


async def quiet_down(  # noqa: PLR0913 - a session, its newest turn, and what is known of both
    client: OpencodeClient,
    session: Session,
    stopped: Stopped,
    budget: Budget,
    *,
    turn: Turn | None,
    keeper: Keeper | None,
    moved: bool,
) -> None:
    """Stop the session's turn and clear what waits; note in `stopped` whether a turn was cut.

    `turn`: its newest one. `keeper`: of that turn, if this process observes it. `moved`: the
    instance that ran it is proven dead. Raises BudgetSpentError, OpencodeError, and what the
    budget's limit raises.
    """
    runs = turn is not None and not moved and await _may_run(client, turn, keeper, budget)
    if turn is not None and runs:
        with suppress(OpencodeTimeoutError):  # if all hangs, what follows tells
            await wait_until_seen(client, turn, budget)
    await make_quiet(client, session, stopped, budget)
    messages = await _messages(client, turn, budget) if turn is not None and runs else None
    if messages is None:  # what was busy then was somebody else's prompt, or it cannot be told
        stopped.cut_turn |= stopped.was_busy
        return
    verdict = judge(Evidence(messages, None, (), StopReason.END, settled=True))
    stopped.cut_turn |= bool(messages) and verdict.status is TurnStatus.CANCELLED


async def _may_run(
    client: OpencodeClient, turn: Turn, keeper: Keeper | None, budget: Budget
) -> bool:
    """Whether the turn may run, or be about to: its messages do not say that it is over."""
    if turn.submission is Submission.REFUSED:
        return False
    if keeper is not None and keeper.turn.number == turn.number:
        return not keeper.verdict.is_over
    try:
        messages = await _read(client, turn, budget)
    except OpencodeNotFoundError:
        return False
    if messages is None:
        return True
    return not judge(Evidence(messages, None, (), turn.stop_reason, settled=False)).is_over


async def _messages(client: OpencodeClient, turn: Turn, budget: Budget) -> Sequence[Message] | None:
    try:
        return await _read(client, turn, budget)
    except OpencodeNotFoundError:
        return None


async def _read(client: OpencodeClient, turn: Turn, budget: Budget) -> Sequence[Message] | None:
    """Read the turn's messages; None: they cannot be read. Raises OpencodeNotFoundError."""
    try:
        async with asyncio.timeout(min(budget.left_s(), _READ_S)):
            return await read_turn(client, turn)
    except (OpencodeNotFoundError, OpencodeUnauthorizedError):
        raise
    except (OpencodeError, TimeoutError):
        return None

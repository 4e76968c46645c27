"""Make a session's tree quiet: steps 4 to 6 of the end procedure, also used to stop a turn.

The order is measured (facts, summary): abort first, since rejecting a subagent's ask first makes
its parent go on; reject after it, since an abort leaves the asks behind; and believe only status
and lists, since a 200 from an abort proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opencode_mcp.engine import telling
from opencode_mcp.engine.reading import Asks, Tree, read_asks, read_busy, read_tree
from opencode_mcp.engine.together import together
from opencode_mcp.opencode_errors import (
    OpencodeFailedError,
    OpencodeNotFoundError,
    OpencodeProtocolError,
    ResponseTooLargeError,
)
from opencode_mcp.records import AnsweredBy, Submission

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from opencode_mcp.engine.budget import Budget
    from opencode_mcp.opencode.client import OpencodeClient
    from opencode_mcp.records import Session, Turn

#: so many rounds in a row must find nothing, at least so many seconds apart (facts, step 5)
CLEAN_ROUNDS = 2
ROUND_GAP_S = 0.05
#: how long an accepted prompt may take to become visible: 1.3 s was seen for 3.4 MB (facts 4.6)
UNSEEN_PROMPT_S = 10.0
_CLOCK_SLACK_S = 5.0
_UNSEEN_POLL_S = 0.02
_UNSEEN_POLL_MAX_S = 0.25
#: one such read; 5 ms are usual, and 1.9 s the worst seen under load (facts 12.4, 12.5)
_UNSEEN_READ_S = 3.0
_THERE_BUT_UNREADABLE = (OpencodeFailedError, OpencodeProtocolError, ResponseTooLargeError)


@dataclass(slots=True)
class Stopped:
    """What it took to make a session's tree quiet, over all the attempts of one procedure."""

    #: all that was ever found: after a delete the children cannot be listed any more
    tree: Tree = field(default_factory=lambda: Tree({}))
    was_busy: bool = False
    #: the newest turn was cut short by us
    cut_turn: bool = False
    rejected_permissions: int = 0
    rejected_questions: int = 0


async def wait_until_seen(client: OpencodeClient, turn: Turn, budget: Budget) -> bool:
    """Wait, bounded, until an accepted prompt's message exists; an abort before it is lost.

    False: it did not appear. With a wrong agent it never does (facts 2.4), so go on then. The
    bound counts from the prompt, not from this call: one that never arrived must not cost each
    repetition its whole time, or an end with a short limit would never come further. Raises
    OpencodeTimeoutError when OpenCode hangs, and what else the client raises.
    """
    if turn.submission is Submission.REFUSED:
        return False
    pause_s = _UNSEEN_POLL_S
    while True:
        try:
            left_s = min(budget.left_s(), _UNSEEN_READ_S)
            await client.message(turn.session_id, turn.message_id, timeout_s=left_s)
        except OpencodeNotFoundError:
            # a moment far ahead was written down before the clock was set back
            if not -_CLOCK_SLACK_S <= budget.age_s(turn.created_at) < UNSEEN_PROMPT_S:
                return False
            await budget.pause(pause_s)
            pause_s = min(pause_s * 1.5, _UNSEEN_POLL_MAX_S)
        except _THERE_BUT_UNREADABLE:
            return True
        else:
            return True


async def make_quiet(  # noqa: PLR0913 - a session, and how far to go
    client: OpencodeClient,
    session: Session,
    stopped: Stopped,
    budget: Budget,
    *,
    abort_first: bool = True,
    still_ours: Callable[[], Awaitable[bool]] | None = None,
) -> None:
    """Abort and reject until two rounds in a row find nothing of the tree busy or waiting.

    The first round aborts in any case, unless that was just done (`abort_first` false): a prompt
    may be about to start a turn (facts 4.6).
    `still_ours` is asked before anything busy is aborted again: what runs by then may be a later
    turn, which is left alone.
    What it took is added to `stopped`. Raises BudgetSpentError, and what the client raises.
    """
    stopped.tree = Tree({session.id: session.directory, **stopped.tree.directory_of})
    rounds, clean_rounds = 0, 0
    while True:
        busy, asks = await _look(client, session, stopped, budget)
        if busy and still_ours is not None and not await still_ours():
            return
        stopped.was_busy |= bool(busy)
        if busy or (abort_first and not rounds):
            await _abort(client, stopped.tree, busy or [session.id], budget)
        if busy or asks:
            await _reject(client, stopped, budget)
        clean_rounds = 0 if busy or asks else clean_rounds + 1
        if clean_rounds == CLEAN_ROUNDS:
            return
        rounds += 1
        await budget.pause(ROUND_GAP_S)


async def _look(
    client: OpencodeClient, session: Session, stopped: Stopped, budget: Budget
) -> tuple[list[str], Asks]:
    """Read tree, status and asks at once; children may appear while we are at it."""
    left_s = budget.left_s()
    known = stopped.tree
    tree, busy, asks = await together(
        read_tree(client, session, timeout_s=left_s),
        read_busy(client, known, timeout_s=left_s),
        read_asks(client, known, timeout_s=left_s),
    )
    if set(tree.ids) - set(known.ids):
        stopped.tree = Tree({**known.directory_of, **tree.directory_of})
        busy, asks = await together(
            read_busy(client, stopped.tree, timeout_s=left_s),
            read_asks(client, stopped.tree, timeout_s=left_s),
        )
    return busy, asks


async def _abort(client: OpencodeClient, tree: Tree, ids: list[str], budget: Budget) -> None:
    """Abort parents before children, one after the other (facts 7.3, style B7)."""
    for session_id in ids:
        directory = tree.directory_of[session_id]
        await client.abort(session_id, directory, timeout_s=budget.left_s())


async def _reject(client: OpencodeClient, stopped: Stopped, budget: Budget) -> None:
    """Reject what waits, without a message: a message would make the turn go on (facts 5.3)."""
    asks = await read_asks(client, stopped.tree, timeout_s=budget.left_s())
    directory_of = stopped.tree.directory_of
    for permission in asks.permissions:
        directory = directory_of[permission.session_id]
        left_s = budget.left_s()
        if await client.reject_permission(permission.id, directory, timeout_s=left_s):
            stopped.rejected_permissions += 1
            telling.ask_answered({}, permission, AnsweredBy.STOP, allowed=False)
    for question in asks.questions:
        directory = directory_of[question.session_id]
        left_s = budget.left_s()
        if await client.reject_question(question.id, directory, timeout_s=left_s):
            stopped.rejected_questions += 1
            telling.ask_answered({}, question, AnsweredBy.STOP, allowed=False)

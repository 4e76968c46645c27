"""Steps 7 and 8 of an end: delete or archive the tree, and believe only what is read afterwards."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from opencode_mcp.engine.reading import Tree, read_busy, read_tree
from opencode_mcp.engine.together import together
from opencode_mcp.engine.whose_data import refuse_foreign_data
from opencode_mcp.errors import StaleSessionError
from opencode_mcp.opencode_errors import OpencodeFailedError, OpencodeNotFoundError
from opencode_mcp.records import EndAction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from opencode_mcp.engine.budget import Budget
    from opencode_mcp.engine.instances import Connection
    from opencode_mcp.opencode.client import OpencodeClient
    from opencode_mcp.records import Session
    from opencode_mcp.store.store import Store

_RECHECK_S = 0.05


@dataclass(frozen=True, slots=True)
class Removed:
    """How it went. `was_gone`: somebody else had deleted the session before."""

    was_gone: bool


async def remove(  # noqa: PLR0913 - one step of the end procedure, with all it works on
    store: Store,
    connection: Connection,
    session: Session,
    tree: Tree,
    budget: Budget,
    *,
    before_delete: Callable[[], Awaitable[None]],
) -> Removed:
    """Delete or archive the session's tree and confirm it by reading.

    `before_delete` is awaited before a delete is sent: from then on a 404 is ours. Raises
    InstanceUnreachableError when a 404 proves nothing, because the data may be another's, and
    StaleSessionError when the tree has grown: what is not stopped must not be deleted (facts 6.2).
    """
    assert session.ending is not None  # noqa: S101 - the store gives ENDING rows one
    client = connection.client
    grown, known = await together(
        read_tree(client, session, timeout_s=budget.left_s()), _exists(client, session.id, budget)
    )
    if new := set(grown.ids) - set(tree.ids):
        msg = f"sub-sessions of {session.id} appeared while it ended: {', '.join(sorted(new))}"
        raise StaleSessionError(msg)
    if session.ending.action is EndAction.ARCHIVE:
        known = known and await _archive(client, session, tree, budget)
    elif known:
        await before_delete()
        await client.delete_session(session.id, timeout_s=budget.left_s())
    if not known and not session.ending.delete_sent:
        await refuse_foreign_data(store, connection, session, budget.left_s)
    to_be_gone = tree.ids if session.ending.action is EndAction.DELETE else []
    left_s = budget.left_s()  # it may raise, and must not between the two
    left, busy = await together(
        _existing(client, to_be_gone, budget), read_busy(client, tree, timeout_s=left_s)
    )
    if left:
        await _delete_what_is_left(client, session, left, budget)
    await _confirm_quiet(client, tree, busy, budget)
    return Removed(was_gone=not known and not session.ending.delete_sent)


async def _delete_what_is_left(
    client: OpencodeClient, session: Session, left: list[str], budget: Budget
) -> None:
    """Delete descendants that outlive the session (the delete cascades: facts 7.6)."""
    for child_id in left:
        if child_id != session.id:
            await client.delete_session(child_id, timeout_s=budget.left_s())
    for left_id in await _existing(client, left, budget):
        msg = f"OpenCode still has session {left_id} after it answered the delete"
        raise OpencodeFailedError(msg, method="GET", path=f"/session/{left_id}")


async def _existing(client: OpencodeClient, ids: list[str], budget: Budget) -> list[str]:
    found = await together(*(_exists(client, one, budget) for one in ids))
    return [one for one, is_there in zip(ids, found, strict=True) if is_there]


async def _exists(client: OpencodeClient, session_id: str, budget: Budget) -> bool:
    try:
        await client.session(session_id, timeout_s=budget.left_s())
    except OpencodeNotFoundError:
        return False
    return True


async def _archive(client: OpencodeClient, session: Session, tree: Tree, budget: Budget) -> bool:
    """Archive each session of the tree, children first; whether the root was known."""
    known = True
    for session_id in reversed(tree.ids):
        if not await _archive_one(client, session_id, budget) and session_id == session.id:
            known = False
    return known


async def _archive_one(client: OpencodeClient, session_id: str, budget: Budget) -> bool:
    """Archive one session and read it back. False: OpenCode does not know it."""
    try:
        if (await client.session(session_id, timeout_s=budget.left_s())).is_archived:
            return True
        await client.archive_session(session_id, datetime.now(UTC), timeout_s=budget.left_s())
        read_back = await client.session(session_id, timeout_s=budget.left_s())
    except OpencodeNotFoundError:
        return False
    if not read_back.is_archived:
        msg = f"OpenCode does not show session {session_id} as archived after it answered so"
        raise OpencodeFailedError(msg, method="PATCH", path=f"/session/{session_id}")
    return True


async def _abort_all(client: OpencodeClient, tree: Tree, ids: list[str], timeout_s: float) -> None:
    """Abort each, also where another's abort is refused: none of them may run on for that."""
    aborts = (client.abort(i, tree.directory_of[i], timeout_s=timeout_s) for i in ids)
    for answer in await asyncio.gather(*aborts, return_exceptions=True):
        if isinstance(answer, BaseException):
            raise answer


async def _confirm_quiet(
    client: OpencodeClient, tree: Tree, busy: list[str], budget: Budget
) -> None:
    """Make sure that nothing of the tree runs: a deleted session still can (facts 6.2, 6.3)."""
    while busy:
        left_s = budget.left_s()
        await _abort_all(client, tree, busy, left_s)
        await budget.pause(_RECHECK_S)
        busy = await read_busy(client, tree, timeout_s=budget.left_s())

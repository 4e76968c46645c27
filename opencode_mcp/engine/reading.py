"""Reads that decide: a session's tree, and what waits in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from opencode_mcp.engine.together import together
from opencode_mcp.opencode_errors import OpencodeNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from opencode_mcp.opencode.client import OpencodeClient
    from opencode_mcp.opencode.models import PermissionRequest, QuestionRequest
    from opencode_mcp.records import Session

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tree:
    """A session with all its descendants: each one's id and directory, the root first."""

    directory_of: dict[str, str]

    @property
    def ids(self) -> list[str]:
        """The ids, the root first."""
        return list(self.directory_of)

    @property
    def directories(self) -> set[str]:
        """The folders to ask: status and asks are listed per folder (facts 1.4, 5.1)."""
        return set(self.directory_of.values())


async def read_tree(client: OpencodeClient, session: Session, *, timeout_s: float | None) -> Tree:
    """Return the session's tree; `/children` lists direct children only (facts 7.1)."""
    directory_of = {session.id: session.directory}
    level = [session.id]
    while level:
        families = await together(*(_children(client, parent, timeout_s) for parent in level))
        level = []
        for child_id, directory in (pair for family in families for pair in family):
            if child_id not in directory_of:
                directory_of[child_id] = directory
                level.append(child_id)
    return Tree(directory_of)


async def _children(
    client: OpencodeClient, parent: str, timeout_s: float | None
) -> list[tuple[str, str]]:
    try:
        children = await client.children(parent, timeout_s=timeout_s)
    except OpencodeNotFoundError:
        return []
    return [(child.id, child.directory) for child in children]


async def read_busy(client: OpencodeClient, tree: Tree, *, timeout_s: float | None) -> list[str]:
    """Return the ids of the tree that OpenCode's status lists: busy, or retrying."""
    answers = await together(
        *(client.statuses(directory, timeout_s=timeout_s) for directory in tree.directories)
    )
    listed = {session_id for answer in answers for session_id in answer}
    return [session_id for session_id in tree.ids if session_id in listed]


@dataclass(frozen=True, slots=True)
class Asks:
    """What waits for an answer in a tree."""

    permissions: list[PermissionRequest]
    questions: list[QuestionRequest]

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self.permissions or self.questions)

    @property
    def all(self) -> list[PermissionRequest | QuestionRequest]:
        """Permissions first, then questions."""
        return [*self.permissions, *self.questions]


async def read_asks(client: OpencodeClient, tree: Tree, *, timeout_s: float | None) -> Asks:
    """Return the permissions and questions that wait in the tree."""
    permissions, questions = await together(
        _in_folders(tree, lambda folder: client.permissions(folder, timeout_s=timeout_s)),
        _in_folders(tree, lambda folder: client.questions(folder, timeout_s=timeout_s)),
    )
    return Asks(
        [ask for ask in permissions if ask.session_id in tree.directory_of],
        [ask for ask in questions if ask.session_id in tree.directory_of],
    )


async def _in_folders(
    tree: Tree, read: Callable[[str], Coroutine[object, object, list[T]]]
) -> list[T]:
    """Return what `read` finds in each of the tree's folders, put together."""
    pages = await together(*(read(folder) for folder in tree.directories))
    return [item for page in pages for item in page]

"""A list that is read page by page, and must not change from one page to the next.

What a list is of decides its snapshot's id (`snapshots.py`), so a page can be had from any process
that reads the same, and never from another list.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from opencode_mcp.engine.snapshots import Snapshots, snapshot_id
from opencode_mcp.errors import SnapshotExpiredError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Item = TypeVar("Item")

#: of all snapshots of one kind of list, in characters: several of the largest catalogues seen
_MAX_KEPT_CHARS = 8 * 1024 * 1024
_LONGEST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Listing(Generic[Item]):
    """A whole list and the id that pins it. `is_fresh`: it was read for this call."""

    snapshot_id: str
    items: tuple[Item, ...]
    is_fresh: bool


class PinnedLists(Generic[Item]):
    """Lists by what they are of; an item must be what JSON can hold."""

    def __init__(self, max_chars: int = _MAX_KEPT_CHARS) -> None:
        self._snapshots: Snapshots[tuple[Item, ...]] = Snapshots(max_chars)

    async def get(
        self,
        key: tuple[str, ...],
        wanted: str | None,
        read: Callable[[], Awaitable[tuple[Item, ...]]],
    ) -> Listing[Item]:
        """Return the list as it is now, or the one that the snapshot `wanted` is of.

        Raises SnapshotExpiredError if that is kept no more and another list is read now, and what
        `read` raises.
        """
        kept = None if wanted is None else self._snapshots.find((*key, wanted))
        if wanted is not None and kept is not None:
            return Listing(wanted, kept, is_fresh=False)
        items = await read()
        content = json.dumps(items)
        found = snapshot_id(content)
        self._snapshots.keep((*key, found), items, len(content))
        if wanted is not None and wanted != found:
            msg = (
                f"snapshot {wanted[:_LONGEST_SHOWN]!r} is of another list than there is now, and"
                " is not kept: begin again at offset 0, without snapshot-id"
            )
            raise SnapshotExpiredError(msg)
        return Listing(found, items, is_fresh=True)

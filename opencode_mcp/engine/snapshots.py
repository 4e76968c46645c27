"""What pages are read from, kept so that the next page need not read it again.

A snapshot's id is a digest of its content: a page that names one gets that content or none, at
any process and after a restart. Where it is kept no more, it is read again, and if it has changed
since, the id says so. Nothing here is the only copy of anything.
"""

from __future__ import annotations

import hashlib
from typing import Generic, TypeVar

from cachetools import LRUCache

Content = TypeVar("Content")

#: hexadecimal digits of an id: 80 bits, for telling apart, not for keeping secret
_DIGITS = 20
#: of all that is kept, in characters; about four times that in bytes at worst
MAX_KEPT_CHARS = 32 * 1024 * 1024


def snapshot_id(content: str) -> str:
    """Return the id of a content: the same wherever and whenever it is read."""
    return "snap_" + hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


class Snapshots(Generic[Content]):
    """Contents by what they are of and by their id; those used last stay.

    The key must name all that the content depends on but time: who may see it is the caller's to
    check before it asks.
    """

    def __init__(self, max_chars: int = MAX_KEPT_CHARS) -> None:
        self._kept: LRUCache[tuple[str, ...], tuple[Content, int]]
        self._kept = LRUCache(max_chars, getsizeof=lambda kept: kept[1])

    def keep(self, key: tuple[str, ...], content: Content, chars: int) -> None:
        """Keep a content that takes so many characters; one beyond the bound is not kept."""
        if chars <= self._kept.maxsize:
            self._kept[key] = (content, max(1, chars))

    def find(self, key: tuple[str, ...]) -> Content | None:
        """Return the content, or None if it is not kept."""
        kept = self._kept.get(key)
        return None if kept is None else kept[0]

"""Pages of messages: the newest first, each with a cursor to older ones (facts 11.1)."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING

from tests.twin.shapes import Json, compact

if TYPE_CHECKING:
    from collections.abc import Mapping


class BadCursorError(Exception):
    """A cursor without a limit, or one that OpenCode did not make."""


def page_of(history: list[Json], query: Mapping[str, str]) -> tuple[list[Json], str | None]:
    """Return a page, oldest first, and the cursor to the page before it."""
    limit, before = query.get("limit", ""), query.get("before")
    if before is not None and not limit.isdecimal():
        raise BadCursorError
    if before is not None:
        history = history[: _place(history, before)]
    if not limit.isdecimal() or int(limit) == 0 or len(history) <= int(limit):
        return history, None
    found = history[-int(limit) :]
    return found, _cursor(found[0]["info"])


def _cursor(info: Json) -> str:
    text = compact({"id": info["id"], "time": info["time"]["created"]})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _place(history: list[Json], cursor: str) -> int:
    try:
        named = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))["id"]
    except (ValueError, binascii.Error, KeyError, TypeError):
        raise BadCursorError from None
    for index, message in enumerate(history):
        if message["info"]["id"] == named:
            return index
    raise BadCursorError

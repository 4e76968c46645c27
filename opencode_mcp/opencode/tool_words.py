"""What a running tool call is about, in a few words: for people who watch.

Only what tells the work is taken from a call's input, and never its content: a command's
description before the command, a file's path, an address without its query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_CHARS = 300
#: inputs of OpenCode's own tools that tell what a call is about, the best first (1.18.33)
_TELLING = ("description", "filePath", "command", "pattern", "path", "query", "name")


def about_call(tool: str, state: Mapping[str, object]) -> str:
    """Return what a call with this state is about, in one line; "" where nothing tells it."""
    given = state.get("input")
    told = given if isinstance(given, dict) else {}
    title = _text(state.get("title"))
    if tool == "task":
        agent = _text(told.get("subagent_type"))
        about = _text(told.get("description")) or title
        return ": ".join(part for part in (agent, about) if part)
    if title:
        return title
    if address := _text(told.get("url")):
        return _without_query(address)
    return next((text for name in _TELLING if (text := _text(told.get(name)))), "")


def _text(value: object) -> str:
    """Return a text as one line; "" for what is none."""
    if not isinstance(value, str):
        return ""
    first = value.strip()[: _MAX_CHARS * 2]
    return " ".join(first.split())[:_MAX_CHARS]


def _without_query(address: str) -> str:
    """Return host and path: user info and query may hold a secret."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return f"{parts.hostname or ''}{parts.path}"

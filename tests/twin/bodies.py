"""What a body must be: the checks OpenCode makes, and those it does not (facts 1.2, 2.3)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.twin import shapes

if TYPE_CHECKING:
    from aiohttp import web

    from tests.twin.shapes import Json

_ACTIONS = ("allow", "ask", "deny")


async def read(http: web.Request) -> Json | None:
    """Return the body, empty where there is none; None: it is no JSON object."""
    raw = await http.read()
    if not raw:
        return {}
    try:
        body = json.loads(raw)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def is_session(body: Json) -> bool:
    """Whether a session can be made of it: types and prefixes count, existence does not."""
    parent = body.get("parentID")
    return (
        isinstance(body.get("title", ""), str)
        and isinstance(body.get("metadata", {}), dict)
        and (parent is None or str(parent).startswith("ses"))
        and all(rule.get("action") in _ACTIONS for rule in body.get("permission") or [])
    )


def refuse_prompt(body: Json) -> web.Response | None:
    """Refuse a prompt whose shape is wrong; names in it are not looked at (facts 2.4)."""
    if "parts" not in body:
        return shapes.bad_value('Missing key\n  at ["parts"]', "Payload")
    identifier = body.get("messageID")
    if identifier is not None and not str(identifier).startswith("msg"):
        return shapes.bad_prefix("msg", identifier, "messageID", "Payload")
    return None

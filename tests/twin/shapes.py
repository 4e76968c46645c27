"""OpenCode's words on the wire: ids, moments, and the shapes of its errors (facts 1.8, 8.3)."""

from __future__ import annotations

import itertools
import json
import secrets
import string
import time
from typing import TYPE_CHECKING, Any, TypeAlias

from aiohttp import web

from opencode_mcp.cli.scripted_model import PROVIDER

if TYPE_CHECKING:
    from collections.abc import Mapping

Json: TypeAlias = dict[str, Any]

VERSION = "1.18.33"
NO_TOKENS: Json = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
STEP_TOKENS: Json = {"total": 15, **NO_TOKENS, "input": 10, "output": 5}

_BASE62 = string.digits + string.ascii_letters
_counter = itertools.count()
_PAGE = "<!doctype html>\n<html><head><title>OpenCode</title></head><body></body></html>"


def now_ms() -> int:
    """Return the moment as OpenCode writes it: milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_id(prefix: str) -> str:
    """Return an id that sorts after all earlier ones of its kind."""
    stamp = (now_ms() * 0x1000 + next(_counter) % 0x1000) & 0xFFFFFFFFFFFF
    return f"{prefix}_{stamp:012x}{''.join(secrets.choice(_BASE62) for _ in range(14))}"


def compact(value: object) -> str:
    """Write JSON as OpenCode does, without spaces."""
    return json.dumps(value, separators=(",", ":"))


def error(name: str, message: str) -> Json:
    """Make the error of a message or of a session."""
    return {"name": name, "data": {"message": message}}


ABORTED = error("MessageAbortedError", "Aborted")


def offered_model(name: str) -> Json:
    """Make a model as `GET /config/providers` tells it, read on 1.18.33; prices are left out."""
    return {
        "id": name,
        "providerID": PROVIDER,
        "name": f"Scripted {name}",
        "capabilities": {"temperature": False, "reasoning": False, "toolcall": True},
        "limit": {"context": 10_000_000, "output": 8000},
        "status": "active",
        "options": {},
        "headers": {},
        "variants": {},
    }


def answer(
    value: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Answer with JSON."""
    kind = {"Content-Type": "application/json"}
    return web.Response(
        status=status, body=compact(value).encode(), headers={**kind, **(headers or {})}
    )


def not_found(what: str, identifier: str) -> web.Response:
    """Say that a session or a message does not exist (facts 1.8)."""
    return answer(error("NotFoundError", f"{what} not found: {identifier}"), status=404)


def not_pending(kind: str, identifier: str) -> web.Response:
    """Say that a permission or question does not wait, or no longer (facts 5.2, 5.8)."""
    said = {
        "_tag": f"{kind}NotFoundError",
        "requestID": identifier,
        "message": f"{kind} request not found: {identifier}",
    }
    return answer(said, status=404)


def bad_request() -> web.Response:
    """Refuse a body or a cursor without saying why (facts 1.2, 11.1)."""
    return answer({"_tag": "BadRequest"}, status=400)


def bad_value(message: str, kind: str) -> web.Response:
    """Refuse one value; `kind` is Payload or Params (facts 2.3)."""
    said = {"name": "BadRequest", "data": {"message": message, "kind": kind}}
    return answer(said, status=400)


def bad_prefix(prefix: str, identifier: str, name: str, kind: str = "Params") -> web.Response:
    """Refuse an id of another kind."""
    text = f'Expected a string starting with "{prefix}", got "{identifier}"\n  at ["{name}"]'
    return bad_value(text, kind)


def broken() -> web.Response:
    """Fail as OpenCode does for what it did not expect, such as an id without `ses` (facts 1.8)."""
    said = error("UnknownError", "Unexpected server error. Check server logs for details.")
    said["data"]["ref"] = f"err_{secrets.token_hex(4)}"
    return answer(said, status=500)


def web_app() -> web.Response:
    """Show the page that every unknown route shows (facts 8.2)."""
    return web.Response(body=_PAGE.encode(), headers={"Content-Type": "text/html"})


def unauthorized() -> web.Response:
    """Refuse without a word (facts 8.1)."""
    return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="Secure Area"'})

"""What an HTTP request must show before the MCP library sees it: a host, an origin, a token.

The MCP endpoint and `/metrics` are behind the gate. The probes are not: whoever asks whether this
process is alive knows it by whatever name, and learns nothing else.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from opencode_mcp.log_events import Event, tell
from opencode_mcp.settings_model import variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

#: answer any Host, and nobody's secret
PROBES = frozenset({"/healthz", "/readyz"})
_LONGEST_SHOWN = 100
_WHO = 'Bearer realm="opencode-mcp"'


class HostGate:
    """Refuses requests that a web page elsewhere could have sent (DNS rebinding; MCP §Security).

    `hosts` and `origins` are the settings' patterns. Also keeps proxies from holding back what is
    streamed.
    """

    def __init__(
        self, app: ASGIApp, *, path: str, hosts: Sequence[str], origins: Sequence[str]
    ) -> None:
        self._app = app
        self._path = path
        self._hosts = hosts
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer 421 or 403."""
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        if scope["path"] == f"{self._path}/":  # a redirect would name the host that a proxy hid
            scope = {**scope, "path": self._path}
        await self._app(scope, receive, _unbuffered(send))

    def _refusal(self, headers: Headers) -> JSONResponse | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not is_allowed_host(host, self._hosts):
            return _refuse(421, "host", host, "allowed_hosts")
        if origin is not None and origin.lower() not in self._origins:
            return _refuse(403, "origin", origin, "allowed_origins")
        return None


class TokenGate:
    """Refuses requests without a valid token, where tokens are needed. Sits behind the
    authentication that finds out whose token it is."""  # noqa: D205, D209

    def __init__(self, app: ASGIApp, *, is_needed: bool) -> None:
        self._app = app
        self._is_needed = is_needed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer 401."""
        is_open = scope["type"] != "http" or scope["path"] in PROBES or not self._is_needed
        if is_open or isinstance(scope.get("user"), AuthenticatedUser):
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("authorization") is not None
        tell(log, Event.CALLER_REFUSED, token="unknown" if given else "missing")
        error = ', error="invalid_token"' if given else ""  # RFC 6750 §3.1
        message = "send a token that this server knows: Authorization: Bearer <token>"
        answer = JSONResponse({"error": "unauthorized", "message": message}, 401)
        answer.headers["www-authenticate"] = _WHO + error
        await answer(scope, receive, send)


def is_allowed_host(host: str, patterns: Sequence[str]) -> bool:
    """Say whether a Host header is one of the setting's; a pattern without a port allows any."""
    name, port = _split(host.lower())
    return bool(name) and any(_matches(name, port, pattern) for pattern in patterns)


def _matches(name: str, port: str, pattern: str) -> bool:
    if pattern == "*":
        return True
    wanted, wanted_port = _split(pattern)
    if wanted_port not in {"", "*", port}:
        return False
    if wanted.startswith("*."):
        return name.endswith(wanted[1:])
    return name == wanted


def _split(host: str) -> tuple[str, str]:
    """Return name and port; an IPv6 address keeps its brackets."""
    end = host.rfind("]") + 1
    name, _, port = host[end:].partition(":")
    return host[:end] + name.removesuffix("."), port


def _refuse(status: int, what: str, value: str, setting: str) -> JSONResponse:
    shown, name = value[:_LONGEST_SHOWN], variable(setting)
    tell(log, Event.REQUEST_REFUSED, **{what: shown}, setting=name)
    message = f"the {what} {shown!r} is not allowed here: an operator can add it to {name}"
    return JSONResponse({"error": f"{what} not allowed", "message": message}, status)


def _unbuffered(send: Send) -> Send:
    """Tell proxies to pass each event on at once (nginx holds answers back by default)."""

    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["x-accel-buffering"] = "no"
            headers["cache-control"] = "no-cache"
        await send(message)

    return wrapped

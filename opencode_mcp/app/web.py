"""The HTTP application: the MCP endpoint behind its gate, and the pages for machines that watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, Response

from opencode_mcp.app.readiness import OK
from opencode_mcp.callers.gate import HostGate, TokenGate
from opencode_mcp.callers.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fastmcp import FastMCP
    from starlette.applications import Starlette
    from starlette.requests import Request

    from opencode_mcp.app.readiness import Readiness
    from opencode_mcp.settings import Settings


def build_app(
    server: FastMCP,
    settings: Settings,
    readiness: Readiness,
    scrape: Callable[[], Awaitable[tuple[bytes, str]]],
) -> Starlette:
    """Return the ASGI application that serves these tools to HTTP callers, without sessions.

    `scrape` returns what a Prometheus server gets, and its content type.
    Stateless: a request after a restart, or on another replica, just works (contract §2.1).
    """

    @server.custom_route("/healthz", methods=["GET"])
    async def health(_request: Request) -> JSONResponse:
        return JSONResponse({"status": OK})

    @server.custom_route("/readyz", methods=["GET"])
    async def ready(_request: Request) -> JSONResponse:
        found = await readiness.look()
        is_ready = set(found.values()) == {OK}
        status = {"status": OK if is_ready else "not ready"}
        return JSONResponse(status | found, 200 if is_ready else 503)

    @server.custom_route("/metrics", methods=["GET"])
    async def metrics(_request: Request) -> Response:
        body, content_type = await scrape()
        return Response(body, headers={"content-type": content_type})

    return server.http_app(
        path=settings.http_path,
        stateless_http=True,
        host_origin_protection=False,  # the gate does it, and says how to be let in
        middleware=_middleware(settings),
    )


def _middleware(settings: Settings) -> list[Middleware]:
    """Return what a request passes through, from the outside in."""
    tokens = Tokens(settings)
    gate = Middleware(
        HostGate,
        path=settings.http_path,
        hosts=settings.allowed_hosts,
        origins=settings.allowed_origins,
    )
    browsers = Middleware(
        CORSMiddleware,
        allow_origins=settings.allowed_origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],  # MCP adds headers of its own, and only listed origins get here
        expose_headers=["mcp-session-id", "mcp-protocol-version", "www-authenticate"],
    )
    return [
        gate,
        *([browsers] if settings.allowed_origins else []),
        Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(tokens)),
        Middleware(AuthContextMiddleware),
        Middleware(TokenGate, is_needed=tokens.are_needed),
    ]

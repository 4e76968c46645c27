"""What an HTTP request must show before anything of it is looked at."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.callers.gate import is_allowed_host

if TYPE_CHECKING:
    from tests.support.bridges import Bridges

_PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


async def test_a_strange_host_is_refused_and_the_setting_is_named(
    bridges: Bridges, caplog: pytest.LogCaptureFixture
) -> None:
    server = await bridges.http()
    with caplog.at_level(logging.WARNING):
        reply = await server.post(_PING, host="mcp.example.test")
    assert reply.status == 421
    assert "'mcp.example.test'" in reply.text
    assert "OPENCODE_MCP_ALLOWED_HOSTS" in reply.text
    assert [vars(line)["host"] for line in caplog.records] == ["mcp.example.test"]


async def test_listed_hosts_are_served_and_no_other(bridges: Bridges) -> None:
    """Case B41: a container's name, a published port, a proxy's name."""
    hosts = "bridge,127.0.0.1:49152,mcp.example.test"
    server = await bridges.http(ALLOWED_HOSTS=hosts)
    for host in ("bridge:8000", "127.0.0.1:49152", "mcp.example.test"):
        assert (await server.post(_PING, host=host)).status == 200
    for host in ("evil.test", "127.0.0.1:49153", "mcp.example.test.evil.test", ""):
        assert (await server.post(_PING, host=host)).status == 421


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_probes_answer_any_host_and_need_no_token(bridges: Bridges, path: str) -> None:
    """Cases 35 and B41."""
    server = await bridges.http(AUTH_TOKENS="alice:0123456789abcdef")
    reply = await server.get(path, host="10.1.2.3:8000")
    assert reply.status == 200


async def test_pages_of_other_origins_are_refused_and_the_setting_is_named(
    bridges: Bridges,
) -> None:
    server = await bridges.http()
    reply = await server.post(_PING, origin="https://evil.test")
    assert reply.status == 403
    assert "OPENCODE_MCP_ALLOWED_ORIGINS" in reply.text
    assert (await server.post(_PING, origin="null")).status == 403


async def test_pages_of_a_listed_origin_may_call_and_read_the_answer(bridges: Bridges) -> None:
    origin = "https://chat.example.org"
    server = await bridges.http(ALLOWED_ORIGINS=origin, AUTH_TOKENS="alice:0123456789abcdef")
    headers = "authorization,content-type,mcp-protocol-version,mcp-method,mcp-name,last-event-id"
    asked = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": headers,
    }
    preflight = await server.send("OPTIONS", "/mcp", headers=asked)
    assert preflight.status == 200, "a preflight carries no token"
    assert preflight.headers["access-control-allow-origin"] == origin
    token = {"authorization": "Bearer 0123456789abcdef"}
    reply = await server.post(_PING, origin=origin, **token)
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == origin


async def test_proxies_are_told_to_hold_nothing_back(bridges: Bridges) -> None:
    """Case 32."""
    server = await bridges.http()
    reply = await server.post(_PING)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["x-accel-buffering"] == "no"
    assert reply.headers["cache-control"] == "no-cache"


async def test_the_endpoint_is_found_with_a_slash_at_its_end(bridges: Bridges) -> None:
    """A redirect would name the host and scheme that a proxy hid from its client."""
    server = await bridges.http(HTTP_PATH="/team/mcp/")
    accept = {"accept": "application/json, text/event-stream"}
    for path in ("/team/mcp", "/team/mcp/"):
        reply = await server.send("POST", path, headers=accept, body=_PING)
        assert reply.status == 200
    assert (await server.send("POST", "/mcp", headers=accept, body=_PING)).status == 404


@pytest.mark.parametrize(
    ("host", "patterns", "allowed"),
    [
        ("localhost:8000", ["localhost"], True),
        ("LOCALHOST", ["localhost"], True),
        ("localhost.", ["localhost"], True),
        ("localhost.evil.test", ["localhost"], False),
        ("[::1]:8000", ["[::1]"], True),
        ("[::1]", ["[::1]:8000"], False),
        ("a.example.org", ["*.example.org"], True),
        ("example.org", ["*.example.org"], False),
        ("badexample.org", ["*.example.org"], False),
        ("a.example.org:81", ["*.example.org:80"], False),
        ("a.example.org:80", ["*.example.org:*"], True),
        ("any.test", ["*"], True),
        ("", ["*"], False),
        ("localhost@evil.test", ["localhost"], False),
    ],
)
def test_hosts_match_whole_names(host: str, patterns: list[str], *, allowed: bool) -> None:
    assert is_allowed_host(host, patterns) is allowed

"""`/metrics`: behind the gate, and nobody's names in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridges import Bridges
    from tests.twin import Twin

ALICE = "alices-token-0123456789"


async def test_it_wants_a_token_and_an_allowed_host(bridges: Bridges) -> None:
    server = await bridges.http(AUTH_TOKENS=f"alice:{ALICE}")
    token = {"authorization": f"Bearer {ALICE}"}
    assert (await server.get("/metrics")).status == 401
    assert (await server.get("/metrics", host="evil.test", **token)).status == 421
    reply = await server.get("/metrics", **token)
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


async def test_it_tells_what_is_and_names_nobody(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    server = await bridges.http(AUTH_TOKENS=f"alice:{ALICE}")
    caller = await server.caller(ALICE)
    kept = (await caller.start("SAY:x", project)).session_id
    await caller.end((await caller.start("SAY:y", project)).session_id)
    since = len(twin.requests)
    text = (await server.get("/metrics", authorization=f"Bearer {ALICE}")).text
    assert twin.lines(since) == [], "OpenCode is not asked"
    values = dict(re.findall(r"^(opencode_mcp_\S+) (\S+)$", text, flags=re.MULTILINE))
    assert values['opencode_mcp_sessions{phase="active"}'] == "1.0"
    assert float(values['opencode_mcp_ends_total{action="delete",result="ended"}']) >= 1
    assert float(values['opencode_mcp_tool_calls_total{result="ok",tool="opencode"}']) >= 2
    for name in (kept, "alice", str(project), twin.url):
        assert name not in text

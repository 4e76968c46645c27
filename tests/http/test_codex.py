"""`codex` and `codex-reply` over HTTP: whose a thread is, and what no longer hangs."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import aiohttp
import pytest
import pytest_asyncio
from fastmcp.client.elicitation import ElicitResult

from opencode_mcp.callers.tool_table import CODEX_NAMES
from tests.turns.asks import QUESTION
from tests.turns.cancels import ENDLESS, eventually_quiet
from tests.turns.reading import only_session, streaming, submissions

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.support.http_bridge import HttpServer
    from tests.twin import Twin

ALICE = "alices-token-0123456789"
BOB = "bobs-token-0123456789"
ADMIN = "admins-token-0123456789"
_NOBODY = "ses_000000000001AbCdEfGhIjKlMn"


@pytest_asyncio.fixture
async def server(bridges: Bridges, project: Path) -> HttpServer:
    return await bridges.http(
        AUTH_TOKENS=f"alice:{ALICE},bob:{BOB},root:{ADMIN}",
        ADMINS="token:root",
        CODEX_TOOLS="true",
        DEFAULT_CWD=str(project),
    )


@pytest_asyncio.fixture
async def alice(server: HttpServer) -> Bridge:
    return await server.caller(ALICE)


@pytest.mark.parametrize("name", ["threadId", "conversationId"])
async def test_to_a_stranger_a_thread_is_like_one_that_never_was(
    server: HttpServer, alice: Bridge, twin: Twin, name: str
) -> None:
    bob = await server.caller(BOB)
    hers = (await alice.call("codex", prompt="SAY:x")).thread_id
    since = len(twin.requests)
    foreign = await bob.call_exactly("codex-reply", {"prompt": "SAY:y", name: hers})
    unknown = await bob.call_exactly("codex-reply", {"prompt": "SAY:y", name: _NOBODY})
    assert foreign.is_error
    assert "SESSION_NOT_FOUND" in foreign.content
    assert str(foreign).replace(hers, "ID") == str(unknown).replace(_NOBODY, "ID")
    assert not [line for line in twin.lines(since) if not line.startswith("GET")]
    assert (await bob.call("opencode-end", threadId=hers)).status == "not_found"
    back = await alice.call("codex-reply", threadId=hers, prompt="SAY:z")
    assert (back.is_error, back.content) == (False, "z")


async def test_an_admin_ends_a_thread_of_others_and_does_not_go_on_with_it(
    server: HttpServer, alice: Bridge
) -> None:
    admin = await server.caller(ADMIN)
    hers = (await alice.call("codex", prompt="SAY:x")).thread_id
    refused = await admin.call("codex-reply", threadId=hers, prompt="SAY:y")
    assert refused.is_error
    assert "POLICY_NOT_ALLOWED" in refused.content
    assert (await admin.call("opencode-end", threadId=hers)).status == "ended"


async def test_nobody_reaches_them_without_a_token(server: HttpServer, twin: Twin) -> None:
    for name in CODEX_NAMES:
        call = {"name": name, "arguments": {"prompt": "SAY:x", "threadId": _NOBODY}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        assert (await server.post(body)).status == 401
    assert submissions(twin) == []


@pytest.mark.parametrize(
    ("method", "listed"),
    [
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ],
)
async def test_lists_of_what_there_is_not_are_answered(
    server: HttpServer, method: str, listed: str
) -> None:
    """Codex never answered them."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
    reply = await server.post(body, authorization=f"Bearer {ALICE}")
    (line,) = [line for line in reply.text.splitlines() if line.startswith("data:")]
    assert json.loads(line.removeprefix("data:"))["result"][listed] == []


async def test_who_closes_the_stream_stops_the_turn_and_the_thread_stays_usable(
    server: HttpServer, alice: Bridge, twin: Twin
) -> None:
    """Contract §2.1: over handshake-era HTTP this is how a client cancels."""
    params = {"name": "codex", "arguments": {"prompt": ENDLESS}, "_meta": {"progressToken": "p"}}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    headers = {
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {ALICE}",
    }
    async with aiohttp.ClientSession() as session:
        stream = await session.post(server.url, json=body, headers=headers)
        assert b"notifications/progress" in await stream.content.readuntil(b"\r\n\r\n")
        await streaming(twin)
        stream.close()
    thread_id = only_session(twin)
    await eventually_quiet(twin, thread_id)
    await alice.settled(thread_id)
    answer = await alice.call("codex-reply", threadId=thread_id, prompt="SAY:alive")
    assert (answer.is_error, answer.content) == (False, "alive")


async def test_the_2026_protocol_asks_a_person_for_a_codex_call_too(
    server: HttpServer, twin: Twin
) -> None:
    async def person(*_: object) -> ElicitResult[Json]:
        return ElicitResult(action="accept", content={"q1": "a"})

    caller = await server.caller(ALICE, mode="auto", person=person)
    script = f"{QUESTION}\nTHEN\nSAY:thanks"
    more: Json = {"approval-policy": "on-request"}
    answer = await caller.call_exactly("codex", {"prompt": script, **more})
    assert (answer.is_error, answer.content) == (False, "thanks")
    again = await caller.call("codex-reply", threadId=answer.thread_id, prompt=script)
    assert (again.is_error, again.content) == (False, "thanks")
    assert submissions(twin) == [script, script]


async def test_without_a_way_to_ask_a_person_it_is_rejected_at_once(alice: Bridge) -> None:
    """Contract §2.1: handshake-era HTTP has no elicitation."""
    script = f"{QUESTION}\nTHEN\nSAY:thanks"
    more: Json = {"approval-policy": "on-request"}
    calling = alice.call_exactly("codex", {"prompt": script, **more})
    answer = await asyncio.wait_for(calling, 30)
    assert "cannot ask a person" in answer.content


async def test_they_are_counted_by_their_own_names(server: HttpServer, alice: Bridge) -> None:
    async def counted(result: str) -> list[str]:
        text = (await server.get("/metrics", authorization=f"Bearer {ALICE}")).text
        lines = [line for line in text.splitlines() if f'result="{result}"' in line]
        return [line for line in lines if line.startswith("opencode_mcp_tool_calls_total")]

    # a series that begins at 0 is there before its first call: nothing here fails so
    never = await counted("INTERNAL")
    assert [sum(f'tool="{name}"' in line for line in never) for name in CODEX_NAMES] == [1, 1]
    before = await counted("ok")
    answer = await alice.call("codex", prompt="SAY:x")
    await alice.call("codex-reply", threadId=answer.thread_id, prompt="STATUS:401")
    changed = set(await counted("ok")) - set(before)
    assert ['tool="codex"' in line for line in changed] == [True]
    assert any('tool="codex-reply"' in line for line in await counted("UPSTREAM_ERROR"))

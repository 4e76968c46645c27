"""HTTP has no sessions: any request works by itself, after a restart and on another replica."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import aiohttp
from fastmcp.client.elicitation import ElicitResult

from tests.support.polling import eventually
from tests.turns.asks import QUESTION

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests.support.bridges import Bridges
    from tests.support.http_bridge import HttpServer, Reply
    from tests.twin import Twin


def _call(tool: str, **arguments: object) -> Json:
    params: Json = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


def _result(reply: Reply) -> Json:
    """Return what a tool said, from the stream of events that carried it."""
    assert reply.status == 200, reply.text
    lines = [line for line in reply.text.splitlines() if line.startswith("data:")]
    messages = [json.loads(line.removeprefix("data:")) for line in lines]
    (answer,) = [message for message in messages if message.get("id") == 7]
    found: Json = answer["result"]["structuredContent"]
    return found


async def test_a_call_needs_no_handshake_and_an_old_session_id_is_no_fault(
    bridges: Bridges, project: Path
) -> None:
    """Case B35: what a client sends that was connected to another one."""
    first = await bridges.http()
    session_id = await (await first.caller()).begin("SAY:x", project)
    await first.stack.aclose()
    second = await bridges.http()
    reply = await second.post(
        _call("opencode-status", sessionId=session_id),
        **{"mcp-session-id": "of the one before", "mcp-protocol-version": "2025-06-18"},
    )
    assert _result(reply)["sessionId"] == session_id


async def test_two_replicas_on_one_database_know_the_same_sessions(
    bridges: Bridges, project: Path, twin: Twin
) -> None:
    one, two = await bridges.http(), await bridges.http()
    session_id = await (await one.caller()).begin("HANG", project)
    other = await two.caller()
    assert (await other.status(session_id)).status == "running"
    assert (await other.end(session_id)).status == "ended"
    assert not twin.world.sessions


async def test_who_closes_the_stream_of_its_call_stops_the_turn(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """Contract §2.1: over handshake-era HTTP this is how a client cancels."""
    server = await bridges.http()
    session_id = await _hang_up(server, twin, "opencode", prompt="HANG", cwd=str(project))
    caller = await server.caller()
    assert (await caller.settled(session_id)).status == "cancelled"


async def test_who_closes_the_stream_of_a_mere_look_lets_go(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    server = await bridges.http()
    caller = await server.caller()
    session_id = await caller.begin("HANG", project)
    await _hang_up(server, twin, "opencode-status", sessionId=session_id)
    await asyncio.sleep(0.2)  # nothing to wait for: what must not happen is what is looked for
    assert (await caller.status(session_id)).status == "running"


async def test_with_keep_a_closed_stream_lets_the_turn_run(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    server = await bridges.http(ON_CALL_CANCEL="keep")
    session_id = await _hang_up(server, twin, "opencode", prompt="HANG", cwd=str(project))
    await asyncio.sleep(0.2)
    assert (await (await server.caller()).status(session_id)).status == "running"


async def _hang_up(server: HttpServer, twin: Twin, tool: str, **arguments: object) -> str:
    """Make a watching call, close its stream once its turn runs; return the session's id."""
    body = _call(tool, **arguments, **{"wait-seconds": 60})
    accept = {"accept": "application/json, text/event-stream"}
    async with aiohttp.ClientSession() as session:
        answer = await session.post(server.url, json=body, headers=accept)
        progress = await answer.content.readuntil(b"\r\n\r\n")
        assert b"notifications/progress" in progress

        async def runs() -> bool:
            return bool(twin.runs.running)

        await eventually(runs, what="the turn runs")
        answer.close()
    return next(iter(twin.world.sessions))


async def test_progress_comes_while_the_call_watches(bridges: Bridges, project: Path) -> None:
    caller = await (await bridges.http()).caller()
    told: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        told.append(message or "")

    arguments = {"prompt": "SLOW:20,10", "cwd": str(project), "wait-seconds": 30}
    await caller.call_exactly("opencode", arguments, progress=hear)
    assert told


async def test_without_a_way_to_ask_a_person_it_is_rejected_and_caller_is_named(
    bridges: Bridges, project: Path
) -> None:
    """Contract §2.1: handshake-era HTTP has no elicitation."""

    async def person(*_: object) -> ElicitResult[dict[str, object]]:
        raise AssertionError

    caller = await (await bridges.http()).caller(person=person)
    answer = await caller.start(QUESTION, project, approval_policy="on-request", wait_seconds=20)
    assert "approval-policy caller" in json.dumps(answer.structured["warnings"])


async def test_the_2026_protocol_asks_a_person_also_over_http(
    bridges: Bridges, project: Path
) -> None:
    async def person(*_: object) -> ElicitResult[dict[str, object]]:
        return ElicitResult(action="accept", content={"q1": "a"})

    caller = await (await bridges.http()).caller(mode="auto", person=person)
    answer = await caller.start(QUESTION, project, approval_policy="on-request", wait_seconds=20)
    assert answer.status == "completed", answer.text
    assert "warnings" not in answer.structured


async def test_there_is_no_stream_to_wait_at(bridges: Bridges) -> None:
    server = await bridges.http()
    reply = await server.get("/mcp", accept="text/event-stream")
    assert reply.status == 405


async def test_the_tools_say_what_http_costs(bridges: Bridges) -> None:
    caller = await (await bridges.http(CODEX_TOOLS="true")).caller()
    tools = {tool.name: tool for tool in await caller.client.list_tools()}
    for name in ("opencode", "opencode-reply", "codex", "codex-reply"):
        assert "Closing this call's stream stops" in (tools[name].description or "")
        assert len(tools[name].description or "") <= 1200
    policy = tools["opencode"].input_schema["properties"]["approval-policy"]
    assert "2026-07-28" in policy["description"]
    assert (
        "danger-full-access" not in tools["opencode"].input_schema["properties"]["sandbox"]["enum"]
    )

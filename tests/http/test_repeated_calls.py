"""A call that its client repeats with a person's answer, over HTTP: raw, as protocol 2026-07-28."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.turns.asks import QUESTION

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests.support.bridges import Bridges
    from tests.support.http_bridge import HttpServer
    from tests.twin import Twin

ALICE = "alices-token-0123456789"
BOB = "bobs-token-0123456789"
_VERSION = "2026-07-28"
_PREFIX = "io.modelcontextprotocol/"
_META = {
    f"{_PREFIX}protocolVersion": _VERSION,
    f"{_PREFIX}clientInfo": {"name": "test", "version": "0"},
    f"{_PREFIX}clientCapabilities": {"elicitation": {"form": {}}},
}


async def _post(server: HttpServer, token: str, arguments: Json, **more: object) -> Json:
    params = {"name": "opencode", "arguments": arguments, "_meta": _META, **more}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    headers = {
        "authorization": f"Bearer {token}",
        "mcp-protocol-version": _VERSION,
        "mcp-method": "tools/call",
        "mcp-name": "opencode",
    }
    reply = await server.post(body, **headers)
    lines = [line for line in reply.text.splitlines() if line.startswith("data:")]
    found: Json = json.loads(lines[-1].removeprefix("data:") if lines else reply.text)
    return found


def _answers(first: Json) -> Json:
    (ask_id,) = first["result"]["inputRequests"]
    return {
        "requestState": first["result"]["requestState"],
        "inputResponses": {ask_id: {"action": "accept", "content": {"q1": "a"}}},
    }


async def test_it_goes_on_with_its_turn_also_after_a_restart_and_never_submits_twice(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    tokens = f"alice:{ALICE},bob:{BOB}"
    arguments: Json = {"prompt": QUESTION, "cwd": str(project), "wait-seconds": 20}
    arguments["approval-policy"] = "on-request"
    one = await bridges.http(AUTH_TOKENS=tokens, ON_EXIT="keep")
    two = await bridges.http(AUTH_TOKENS=tokens)
    first = await _post(one, ALICE, arguments)
    assert first["result"]["resultType"] == "input_required"
    foreign = await _post(two, BOB, arguments, **_answers(first))
    assert "Invalid or expired requestState" in json.dumps(foreign)
    last = await _post(two, ALICE, arguments, **_answers(first))
    assert last["result"]["structuredContent"]["status"] == "completed", last
    prompts = [line for line in twin.lines() if "prompt_async" in line]
    assert len(prompts) == 1

"""What a client sees of our server over stdio, message by message: nothing that it did not ask for.

Spoken to byte by byte, since a client's library would hide a second answer or a stray request.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.callers.tool_table import NAMES
from tests.support.polling import eventually
from tests.turns.exits import serving, structured, told
from tests.turns.reading import nothing_runs, only_session, streaming
from tests.twin import Hang

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests.real.support.raw_stdio import RawStdio
    from tests.support.bridges import Bridges
    from tests.twin import Planned, Twin

ASKING = 'TOOL:{"name":"bash","args":{"command":"echo hi","description":"say"}}'


@pytest.fixture
def asking(project: Path) -> Path:
    """Give a folder in which a command needs leave."""
    rules = '{"permission": {"bash": "ask"}}'
    (project / "opencode.json").write_text(rules, encoding="utf-8")
    return project


def unasked(server: RawStdio) -> list[Json]:
    """Return what our server asked its client for."""
    return [message for message in server.messages() if "method" in message and "id" in message]


async def start(server: RawStdio, identity: int, folder: Path, **more: object) -> Json:
    """Start a session; return what is told of its turn."""
    server.call(identity, "opencode", cwd=str(folder), **more)
    return await told(server, identity)


async def cancelled(server: RawStdio, identity: int) -> None:
    """Cancel a call, twice, and see that the server goes on and answers it once at most."""
    for _ in range(2):
        server.notify("notifications/cancelled", {"requestId": identity, "reason": "the user"})
    tools = await server.request(identity + 1, "tools/list")
    assert {tool["name"] for tool in tools["result"]["tools"]} == set(NAMES)
    server.call(identity + 2, "opencode-status")
    assert (await told(server, identity + 2))["kind"] == "sessions"
    assert len(server.answers(identity)) <= 1


async def test_whichever_call_is_cancelled_the_server_goes_on(
    bridges: Bridges, twin: Twin, asking: Path, tmp_path: Path
) -> None:
    """Case B05: each tool, cancelled while OpenCode keeps it waiting."""
    async with serving(bridges, tmp_path) as server:
        first = await start(server, 10, asking, prompt="SAY:x", approval_policy="caller")
        ids = {"sessionId": first["sessionId"]}

        held = twin.fail(Hang(), method="POST", path=r"^/session$")
        await _cancel_held(server, 20, held, "opencode", prompt="SAY:y", cwd=str(asking))
        held = twin.fail(Hang(), method="POST", path=r"/prompt_async$")
        await _cancel_held(server, 30, held, "opencode-reply", prompt="SAY:z", **ids)

        waiting = await _replied(server, 1000, prompt=ASKING, wait_seconds=20, **ids)
        assert waiting["status"] == "waiting_for_approval", waiting["content"]
        approval = {"approvalId": waiting["pendingApprovals"][0]["id"], "decision": "reject"}
        held = twin.fail(Hang(), method="POST", path=r"^/permission/")
        await _cancel_held(server, 60, held, "opencode-approve", **ids, **approval)
        server.call(70, "opencode-cancel", wait_ms=20_000, **ids)
        assert (await told(server, 70))["done"] is True

        running = await _replied(server, 2000, prompt="HANG", wait_seconds=0, **ids)
        assert running["status"] == "running", running["content"]
        held = twin.fail(Hang(), method="POST", path=r"/abort$")
        await _cancel_held(server, 80, held, "opencode-cancel", wait_ms=20_000, **ids)
        held = twin.fail(Hang(), method="DELETE", path=r"^/session/")
        await _cancel_held(server, 90, held, "opencode-end", **ids)

        async def is_ended() -> bool:
            return first["sessionId"] not in twin.world.sessions

        await eventually(is_ended, what="an end that was accepted is carried out all the same")
        assert await server.close_stdin() == 0
    await nothing_runs(twin)


async def _cancel_held(
    server: RawStdio, identity: int, held: Planned, tool: str, **arguments: object
) -> None:
    """Call a tool, cancel the call once OpenCode holds it up, and let OpenCode go on."""
    server.call(identity, tool, **arguments)
    async with asyncio.timeout(30):
        await held.reached.wait()
    await cancelled(server, identity)
    held.release()


async def _replied(server: RawStdio, identity: int, **arguments: object) -> Json:
    """Reply once the session takes a prompt again: the turn of a cancelled call is stopped first.

    Returns what is told of the new turn.
    """
    answers: list[Json] = []

    async def check() -> bool:
        number = identity + len(answers)
        server.call(number, "opencode-reply", **arguments)
        answers.append(await told(server, number))
        return bool(answers[-1].get("error", {}).get("name") != "SESSION_BUSY")

    await eventually(check, what="the session takes a prompt")
    return answers[-1]


async def test_a_cancel_of_nothing_is_no_fault(
    bridges: Bridges, project: Path, tmp_path: Path
) -> None:
    """Case B05: a request that never was, and one that is answered already."""
    async with serving(bridges, tmp_path) as server:
        await start(server, 1, project, prompt="SAY:x")
        await cancelled(server, 1)
        server.notify("notifications/cancelled", {"requestId": 999})
        server.notify("notifications/cancelled", {})
        assert (await server.request(9, "ping"))["result"] == {}


async def test_a_client_that_can_ask_nobody_is_asked_nothing(
    bridges: Bridges, asking: Path, tmp_path: Path
) -> None:
    """Case 25: rejected at once, and the policy that works is named; `caller` waits."""
    async with serving(bridges, tmp_path) as server:
        rejected = await start(
            server, 1, asking, prompt=f"{ASKING}\nTHEN\nSAY:on", approval_policy="on-request"
        )
        waits = await start(server, 2, asking, prompt=ASKING, approval_policy="caller")
        assert rejected["status"] == "completed", rejected["content"]
        assert "approval-policy caller" in rejected["content"]
        assert waits["status"] == "waiting_for_approval"
        assert unasked(server) == []


async def test_progress_goes_to_who_gave_a_token_and_to_nobody_else(
    bridges: Bridges, twin: Twin, project: Path, tmp_path: Path
) -> None:
    """Case B31."""
    async with serving(bridges, tmp_path) as server:
        server.call(1, "opencode", prompt="HANG", cwd=str(project), wait_seconds=0)
        session_id = (await told(server, 1))["sessionId"]
        await streaming(twin)
        assert session_id == only_session(twin)
        arguments = {"sessionId": session_id, "wait-seconds": 1}
        look: Json = {"name": "opencode-status", "arguments": arguments}
        await server.request(2, "tools/call", look)
        silent = _progress(server)
        await server.request(3, "tools/call", look | {"_meta": {"progressToken": "mine"}})
        heard = _progress(server)
        assert silent == []
        assert heard
        assert {message["params"]["progressToken"] for message in heard} == {"mine"}
        assert structured(server.answers(3)[0])["status"] == "running"


def _progress(server: RawStdio) -> list[Json]:
    return [one for one in server.messages() if one.get("method") == "notifications/progress"]

"""What goes over stdin and stdout, and how the process ends."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.callers.tool_table import NAMES
from tests.real.support.raw_stdio import RawStdio
from tests.real.support.scripts import ENDLESS
from tests.support.polling import eventually, steadily

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests.real.support.bridges import RealBridges
    from tests.real.support.opencode_server import OpencodeServer
    from tests.real.support.witness import Witness


def structured(message: Json) -> Json:
    """Return the structured half of a tool's answer."""
    found: Json = message["result"]["structuredContent"]
    return found


async def running_session(witness: Witness, folder: Path) -> str:
    """Wait for the folder's only session to stream; return its id."""

    async def check() -> str | None:
        found = await witness.sessions(folder)
        return str(found[0]["id"]) if found else None

    session_id = await eventually(check, what="a session appears")
    assert session_id is not None
    await witness.streaming(session_id)
    return session_id


async def silent(witness: Witness, session_id: str) -> None:
    """Wait until the model is no longer asked for a session, and watch that it stays so."""

    async def check() -> bool:
        return not witness.streams(session_id)

    await eventually(check, within_s=10, what="the turn was stopped")
    await steadily(check, for_s=1, what="the turn stays stopped")


async def test_stdout_carries_json_rpc_and_nothing_else(
    bridges: RealBridges, opencode: OpencodeServer, project: Path, tmp_path: Path
) -> None:
    """Case 31: with debug logging, warnings on, and failing calls in between."""
    env = bridges.attach_env(LOG_LEVEL="debug", SERVER_PASSWORD=opencode.password)
    env |= {"PYTHONWARNINGS": "always", "FORCE_COLOR": "1"}
    async with RawStdio(env, tmp_path) as server:
        await server.initialize()
        await server.request(1, "tools/list")
        server.call(2, "opencode", prompt="SAY:SECRET-ANSWER SECRET-PROMPT", cwd=str(project))
        session_id = structured(await server.answer(2))["sessionId"]
        server.call(3, "opencode-reply", sessionId=session_id, prompt="EMPTY")
        server.call(4, "opencode", bogus=1)
        await server.answer(3)
        await server.answer(4)
        server.call(5, "opencode-end", sessionId=session_id)
        ended = structured(await server.answer(5))
        code = await server.close_stdin()
        log = server.log.read_text(encoding="utf-8")

        assert ended["status"] == "ended"
        assert code == 0
        assert server.messages()
        assert log, "it did log, to stderr"
        for secret in (opencode.password, "SECRET-PROMPT", "SECRET-ANSWER"):
            assert secret not in log


async def test_a_cancelled_call_stops_its_turn_and_leaves_the_server_usable(
    bridges: RealBridges, witness: Witness, project: Path, tmp_path: Path
) -> None:
    """Case B05, and contract §2.1: ON_CALL_CANCEL is `abort`."""
    async with RawStdio(bridges.attach_env(), tmp_path) as server:
        await server.initialize()
        server.call(7, "opencode", prompt=ENDLESS, cwd=str(project), wait_seconds=60)
        session_id = await running_session(witness, project)
        server.notify("notifications/cancelled", {"requestId": 7, "reason": "the user"})
        tools = await server.request(8, "tools/list")
        server.call(9, "opencode-status", sessionId=session_id)
        await server.answer(9)
        await silent(witness, session_id)
        server.call(10, "opencode-status", sessionId=session_id)
        status = structured(await server.answer(10))
        server.call(11, "opencode-reply", sessionId=session_id, prompt="SAY:go on")
        reply = structured(await server.answer(11))

        assert {tool["name"] for tool in tools["result"]["tools"]} == set(NAMES)
        assert status["status"] == "cancelled"
        assert reply["status"] == "completed"
        assert len(server.answers(7)) <= 1, "at most one message for a cancelled request"


async def test_a_cancelled_call_lets_its_turn_run_where_that_is_set(
    bridges: RealBridges, witness: Witness, project: Path, tmp_path: Path
) -> None:
    async with RawStdio(bridges.attach_env(ON_CALL_CANCEL="keep"), tmp_path) as server:
        await server.initialize()
        server.call(7, "opencode", prompt=ENDLESS, cwd=str(project), wait_seconds=60)
        session_id = await running_session(witness, project)
        server.notify("notifications/cancelled", {"requestId": 7})
        await server.request(8, "tools/list")

        async def streams() -> bool:
            return bool(witness.streams(session_id))

        await steadily(streams, for_s=2, what="the turn runs on")
        server.call(9, "opencode-end", sessionId=session_id)
        assert structured(await server.answer(9))["status"] == "ended"
        await witness.ended(session_id, project)


async def test_a_closed_stdin_ends_the_process_and_the_turn_of_its_open_call(
    bridges: RealBridges, witness: Witness, project: Path, tmp_path: Path
) -> None:
    """Case B33: stdin's end is an order to stop."""
    async with RawStdio(bridges.attach_env(), tmp_path) as server:
        await server.initialize()
        server.call(7, "opencode", prompt=ENDLESS, cwd=str(project), wait_seconds=60)
        session_id = await running_session(witness, project)
        code = await server.close_stdin()
        snapshot = structured(await server.answer(7))

        assert code == 0
        assert (snapshot["status"], snapshot["sessionId"]) == ("running", session_id)
        await silent(witness, session_id)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["term", "int"])
async def test_a_signal_ends_the_process_and_the_turn_of_its_open_call(
    bridges: RealBridges, witness: Witness, project: Path, tmp_path: Path, number: signal.Signals
) -> None:
    async with RawStdio(bridges.attach_env(), tmp_path) as server:
        await server.initialize()
        server.call(7, "opencode", prompt=ENDLESS, cwd=str(project), wait_seconds=60)
        session_id = await running_session(witness, project)
        server.process.send_signal(number)
        code = await server.exited(within_s=9)
        snapshot = structured(await server.answer(7))

        assert code == 0
        assert (snapshot["status"], snapshot["sessionId"]) == ("running", session_id)
        await silent(witness, session_id)


async def test_an_idle_server_leaves_at_once_when_stdin_closes(
    bridges: RealBridges, tmp_path: Path
) -> None:
    async with RawStdio(bridges.attach_env(), tmp_path) as server:
        await server.initialize()

        assert await server.close_stdin() == 0


async def test_a_line_that_is_no_json_does_not_stop_the_server(
    bridges: RealBridges, tmp_path: Path
) -> None:
    async with RawStdio(bridges.attach_env(), tmp_path) as server:
        await server.initialize()
        server.send_line(b"this is not json")
        server.send_line(json.dumps({"jsonrpc": "2.0", "id": 3, "method": "no/such"}).encode())
        answer = await server.request(4, "ping")

        assert answer["result"] == {}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        pytest.param("OPENCODE_MCP_DATABSE", "/tmp/x.db", "DATABASE", id="misspelt"),  # noqa: S108
        pytest.param("OPENCODE_MCP_END_ACTION", "purge", "archive", id="wrong-value"),
    ],
)
async def test_wrong_settings_stop_the_start_with_a_clear_word(
    bridges: RealBridges, tmp_path: Path, name: str, value: str, says: str
) -> None:
    async with RawStdio(bridges.attach_env() | {name: value}, tmp_path) as server:
        code = await server.exited(within_s=20)
        log = server.log.read_text(encoding="utf-8")

        assert code not in {0, None}
        assert name in log
        assert says in log
        assert "Traceback" not in log
        assert server.lines == []

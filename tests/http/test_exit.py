"""How an HTTP server of ours exits (contract §4, `ON_EXIT`): answers first, in time, with 0."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.app.http import serve_http
from opencode_mcp.errors import ListenError
from opencode_mcp.settings import load_settings
from tests.support.polling import eventually
from tests.support.process_bridge import COMMAND
from tests.twin import Hang

if TYPE_CHECKING:
    from tests.support.bridges import Bridges
    from tests.support.http_bridge import HttpProcess
    from tests.twin import Twin

#: contract §4 promises 9
_WHOLE_S = 9.0


async def _running(twin: Twin, count: int = 1) -> None:
    async def check() -> bool:
        return len(twin.runs.running) == count

    await eventually(check, what=f"{count} turns run")


async def _exit_code(server: HttpProcess) -> int:
    began = time.monotonic()
    code = await server.exit_code()
    assert time.monotonic() - began < _WHOLE_S
    return code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_who_watches_is_answered_and_the_turn_is_stopped(
    bridges: Bridges, twin: Twin, project: Path, number: signal.Signals
) -> None:
    """Case 34: an open stream, and an exit code of 0."""
    server = await bridges.http_process()
    caller = await server.caller()
    watching = asyncio.create_task(caller.start("HANG", project, wait_seconds=60))
    await _running(twin)
    server.signal(number)
    answer = await watching
    assert answer.status == "running"
    assert "SHUTTING_DOWN" in json.dumps(answer.structured["warnings"])
    assert await _exit_code(server) == 0
    assert not twin.runs.running


async def test_it_is_unready_while_it_answers(bridges: Bridges, twin: Twin, project: Path) -> None:
    server = await bridges.http_process()
    caller = await server.caller()
    session_id = await caller.begin("HANG", project)
    await _running(twin)
    held = twin.fail(Hang(), path=r"/abort$", times=None)
    stopping = asyncio.create_task(caller.call("opencode-cancel", sessionId=session_id))
    await held.reached.wait()
    server.signal(signal.SIGTERM)

    async def stops() -> bool:
        return bool(
            (await server.get("/readyz")).json == {"status": "not ready", "server": "stopping"}
        )

    await eventually(stops, what="/readyz says that it stops")
    assert (await server.get("/healthz")).status == 200
    refused = await caller.call("opencode", prompt="SAY:x", cwd=str(project))
    assert refused.error == "SHUTTING_DOWN"
    assert (await stopping).status == "stopping"
    held.release()
    assert await _exit_code(server) == 0


async def test_a_second_signal_ends_it_at_once(bridges: Bridges, twin: Twin, project: Path) -> None:
    server = await bridges.http_process()
    caller = await server.caller()
    await caller.begin("HANG", project)
    await _running(twin)
    held = twin.fail(Hang(), path=r"/abort$", times=None)
    server.signal(signal.SIGTERM)
    await held.reached.wait()  # the first is being heeded: two that wait would be one
    server.signal(signal.SIGTERM)
    assert await server.exit_code() == 128 + signal.SIGTERM
    held.release()


async def test_a_signal_while_it_still_starts_ends_it_with_0(
    bridges: Bridges, tmp_path: Path
) -> None:
    env = bridges.attach_env(TRANSPORT="http", PORT="0")
    process = await asyncio.create_subprocess_exec(
        str(COMMAND), env=env, cwd=tmp_path, stderr=asyncio.subprocess.PIPE
    )

    async def catches_it() -> bool:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) & 1 << (signal.SIGTERM - 1))

    await eventually(catches_it, what="Python is up, and the program is being imported")
    process.terminate()
    _, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")


async def test_a_request_that_is_still_being_sent_holds_nothing_up_and_is_no_error(
    bridges: Bridges,
) -> None:
    server = await bridges.http_process()
    port = int(server.origin.rpartition(":")[2])
    _, sending = await asyncio.open_connection("127.0.0.1", port)
    sending.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{")
    await sending.drain()
    assert (await server.get("/healthz")).status == 200  # it has that one by now, too
    server.signal(signal.SIGTERM)
    assert await _exit_code(server) == 0
    sending.close()
    log = server.log.read_text(encoding="utf-8")
    assert "Traceback" not in log
    assert '"level": "ERROR"' not in log


async def test_a_server_that_stops_by_itself_is_no_success(
    bridges: Bridges, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uvicorn returns when the application does not come up."""

    async def gives_up(*_: object, **__: object) -> None:
        return

    monkeypatch.setattr("uvicorn.Server.serve", gives_up)
    monkeypatch.setattr("opencode_mcp.app.exiting.go", lambda: None)  # it would be us
    env = bridges.attach_env(TRANSPORT="http", PORT="0")
    with pytest.raises(ListenError, match="stopped by itself"):
        await serve_http(load_settings(env, cwd=project), env)


async def test_a_port_that_is_taken_is_named(bridges: Bridges, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(RuntimeError, match="ended with 1"):
            await bridges.http_process(PORT=port)
    log = (tmp_path / "http-1.log").read_text(encoding="utf-8")
    assert f"cannot listen at 127.0.0.1 port {port}: Address already in use" in log
    assert "OPENCODE_MCP_PORT" in log
    assert "Traceback" not in log

"""Starts of managed instances (contract, section 1): what fails is told, and leaves nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.opencode_errors import OpencodeStartError, OpencodeUnsupportedError
from tests.opencode.managed_support import (
    PATIENCE_S,
    World,
    eventually,
    opencode_binary,
    request,
    settings,
    supervisors,
)
from tests.opencode.stand_ins import HANGS, STUBBORN, fake_opencode

if TYPE_CHECKING:
    from pathlib import Path

#: as OpenCode 2.x does (pingdotgg/t3code#12936): another ready line, a password of its own
_OF_ANOTHER_GENERATION = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({status})
        self.end_headers()
        self.wfile.write({body!r})
    do_POST = do_GET
port = int(sys.argv[sys.argv.index("--port") + 1])
server = http.server.HTTPServer(("127.0.0.1", port), Handler)
print(f"{ready}", flush=True)
print("server password hunter2hunter2", flush=True)
server.serve_forever()
"""
_FAILS = """
import os, sys
print("reading the config", flush=True)
print("\\x1b[31mError: password is", os.environ["OPENCODE_SERVER_PASSWORD"], file=sys.stderr)
print("key is", os.environ["SOME_API_KEY"], "\\x1b[0m", file=sys.stderr)
print("server password hunter2hunter2", file=sys.stderr)
sys.exit(3)
"""
#: the first time somebody else has the port: a socket that stays open when OpenCode takes over
_PORT_IS_TAKEN_ONCE = """
import os, pathlib, socket, sys
marker = pathlib.Path(__file__).with_suffix(".tried")
if not marker.exists():
    marker.touch()
    taken = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])))
    taken.set_inheritable(True)
os.execv({binary!r}, [{binary!r}, *sys.argv[1:]])
"""


async def test_a_cancelled_start_leaves_nothing_running(world: World, tmp_path: Path) -> None:
    hanging = settings(world.home, binary=fake_opencode(tmp_path / "opencode", HANGS))
    start = asyncio.create_task(world.manager().join_or_start(hanging))
    await eventually(lambda: bool(supervisors(world.folder)), "a supervisor runs")
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    await eventually(world.nothing_runs, "everything is gone")


async def test_a_port_that_is_taken_is_exchanged_for_another(world: World, tmp_path: Path) -> None:
    """Case B21: a port is ours only once OpenCode listens at it."""
    body = _PORT_IS_TAKEN_ONCE.format(binary=opencode_binary())
    fake = fake_opencode(tmp_path / "opencode", body)
    instance = await world.manager().join_or_start(settings(world.home, binary=fake))
    assert (tmp_path / "opencode.tried").exists()
    assert request(instance, "GET", "/global/health")["healthy"] is True


async def test_a_missing_binary_is_named_with_the_ways_out(world: World) -> None:
    with pytest.raises(OpencodeStartError) as caught:
        await world.manager().join_or_start(settings(world.home, binary="no-such-opencode"))
    for hint in ("no-such-opencode", "OPENCODE_BIN", "OPENCODE_MCP_SERVER_URL", "bundled"):
        assert hint in str(caught.value)


async def test_a_binary_that_fails_is_quoted_without_secrets(world: World, tmp_path: Path) -> None:
    """Case B21: the real cause does not hide behind a time-out."""
    fake = fake_opencode(tmp_path / "opencode", _FAILS)
    failing = settings(world.home, binary=fake, SOME_API_KEY="sk-1234567890")
    for _ in range(2):  # a failed start is in nobody's way
        with pytest.raises(OpencodeStartError) as caught:
            await world.manager().join_or_start(failing)
        said = str(caught.value)
        assert "exit code 3" in said
        assert "reading the config\n    Error: password is ***\n    key is ***" in said
        assert "sk-1234567890" not in said
        assert "hunter2" not in said
        assert "\x1b" not in said
    assert not list(world.folder.glob("*.json"))
    assert not list(world.folder.glob("*.clients"))


@pytest.mark.parametrize(
    ("ready", "status", "body"),
    [
        pytest.param("server listening on http://127.0.0.1:{port}", 200, b"<html>", id="web-app"),
        pytest.param("server listening on http://127.0.0.1:{port}", 404, b"", id="no-such-route"),
        pytest.param("ready: http://localhost:{port}", 401, b"", id="own-password"),
        pytest.param("v2 at http://127.0.0.1:{port}/", 200, b'{"status": "ok"}', id="other-json"),
        pytest.param(
            "opencode server listening on http://127.0.0.1:{port}",
            200,
            b'{"healthy": true, "version": "2.0.12"}',
            id="same-routes",
        ),
    ],
)
async def test_an_opencode_of_another_generation_is_told_at_once_and_ended(
    world: World, tmp_path: Path, ready: str, status: int, body: bytes
) -> None:
    """Case 27: long before the start's time is up, with the versions that work."""
    text = _OF_ANOTHER_GENERATION.format(ready=ready, status=status, body=body)
    fake = fake_opencode(tmp_path / "opencode", text)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(OpencodeUnsupportedError) as caught:
            await world.manager(startup_timeout_s=1000).join_or_start(
                settings(world.home, binary=fake)
            )
    said = str(caught.value)
    assert "1.18" in said
    assert "OPENCODE_MCP_OPENCODE_BIN" in said
    assert "hunter2" not in said
    assert not list(world.folder.glob("*.json"))
    await eventually(world.nothing_runs, "everything is gone")


async def test_a_server_that_is_not_well_yet_is_waited_for(world: World, tmp_path: Path) -> None:
    body = STUBBORN.replace(
        "self.send_response(200)",
        "Handler.asked += 1\n        self.send_response(200 if Handler.asked > 4 else 503)",
    ).replace("do_POST = do_GET", "do_POST = do_GET\n    asked = 0")
    fake = fake_opencode(tmp_path / "opencode", body)
    instance = await world.manager().join_or_start(settings(world.home, binary=fake))
    assert instance.version == "1.18.33"


async def test_a_binary_that_hangs_is_given_up_and_killed(world: World, tmp_path: Path) -> None:
    fake = fake_opencode(tmp_path / "opencode", HANGS)
    with pytest.raises(OpencodeStartError, match=r"not ready within 1 s[^$]*thinking about it"):
        await world.manager(startup_timeout_s=1).join_or_start(settings(world.home, binary=fake))
    await eventually(world.nothing_runs, "everything is gone")


async def test_a_binary_that_cannot_be_executed_is_explained(world: World, tmp_path: Path) -> None:
    broken = tmp_path / "opencode"
    broken.write_bytes(b"\x7fELF and then nothing")
    broken.chmod(0o700)
    with pytest.raises(OpencodeStartError, match="cannot be executed"):
        await world.manager().join_or_start(settings(world.home, binary=str(broken)))


async def test_who_cannot_get_the_start_lock_in_time_is_told_who_holds_it(
    world: World, tmp_path: Path
) -> None:
    hanging = settings(world.home, binary=fake_opencode(tmp_path / "opencode", HANGS))
    start = asyncio.create_task(world.manager().join_or_start(hanging))
    await eventually(lambda: bool(supervisors(world.folder)), "a supervisor runs")
    with pytest.raises(OpencodeStartError, match=r"another process.*\.start"):
        await world.manager(startup_timeout_s=0.2).join_or_start(hanging)
    start.cancel()
    await asyncio.wait([start])


def test_settings_are_the_same_only_if_nothing_differs(home: Path, tmp_path: Path) -> None:
    one = settings(home, A="1", B="2")
    assert one.key() == settings(home, B="2", A="1").key()
    program = fake_opencode(tmp_path / "opencode", HANGS)
    others = [
        replace(one, args=("--log-level", "DEBUG")),
        settings(home, A="1", B="3"),
        settings(home, A="1"),
        settings(home, binary=program, A="1", B="2"),
    ]
    assert len({one.key(), *(other.key() for other in others)}) == 5
    by_name = settings(home, binary="opencode", PATH=str(tmp_path))
    assert by_name.key() == replace(by_name, binary=program).key()

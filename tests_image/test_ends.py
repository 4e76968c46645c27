"""Case B33: the container is gone when its client is gone, however that went."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.polling import eventually
from tests_image.support.container import (
    GONE_WITHIN_S,
    Container,
    gone,
    namespaces,
    process_1,
    run_to_end,
    running,
    states,
)
from tests_image.support.image import REPOSITORY
from tests_image.support.opencode import well

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json, ScriptedModel
    from tests_image.support.image import Image

#: what a library that greets the world does, at the moment it is imported and later
NOISE = """
import sys
print_to = print

class Noise:
    def find_spec(self, name, path=None, target=None):
        if name in {"aiohttp", "fastmcp", "opencode_mcp.engine.engine"}:
            print_to("hello from", name, flush=True)

sys.meta_path.insert(0, Noise())
"""


async def begin_a_turn(container: Container, log: Path) -> asyncio.subprocess.Process:
    """Start a client process of its own that runs a container with an endless turn in it."""
    with log.open("wb") as errors:
        client = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests_image.support.client", json.dumps(container.argv())),
            cwd=REPOSITORY,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    assert client.stdout is not None
    line = await asyncio.wait_for(client.stdout.readline(), 120)
    assert line == b"the turn runs\n", log.read_text(encoding="utf-8")
    return client


@pytest.mark.parametrize("way", ["eof", "term", "kill"])
async def test_the_container_ends_with_its_client(
    managed: Callable[..., Container],
    model: ScriptedModel,
    tmp_path: Path,
    way: str,
    measures: list[str],
) -> None:
    """EOF; SIGTERM, which the docker client passes on to process 1; SIGKILL, which it cannot."""
    client = await begin_a_turn(managed(), tmp_path / "client.log")
    try:
        (container,) = namespaces()
        await eventually(_streams(model), what="the model is asked")
        init = process_1(container)
        assert init is not None
        began = time.monotonic()
        if way == "eof":
            assert client.stdin is not None
            client.stdin.close()
        elif way == "term":
            os.kill(init, signal.SIGTERM)
        else:
            client.kill()
        await gone({container})
        measures.append(
            f"container gone after {way}: {time.monotonic() - began:.1f} s (allowed 15)"
        )
        await eventually(_streams(model, are=False), what="the model is left alone")
    finally:
        if client.returncode is None:
            client.kill()
        await client.wait()


def _streams(model: ScriptedModel, *, are: bool = True) -> Callable[[], asyncio.Future[bool]]:
    async def check() -> bool:
        return bool(model.open_streams) == are

    return lambda: asyncio.ensure_future(check())


async def test_what_runs_beside_it_is_reaped_and_signals_reach_the_server(
    bundled: Image, tmp_path: Path
) -> None:
    """Process 1 is an init: an orphan of `docker exec` leaves no zombie, and SIGTERM ends all."""
    env = {"OPENCODE_MCP_TRANSPORT": "http", "OPENCODE_MCP_ALLOW_ANONYMOUS": "true"}
    mounts = [f"bind:{bundled.fresh_volume(tmp_path / 'data')}:/data", "tmpfs:mode=1777:/tmp"]
    async with running(Container(bundled, env=env, mounts=mounts), tmp_path / "log") as server:
        await well(server)
        code, said = await server.execute(
            "bash", "-c", "(sleep 0.2 &) ; tr '\\0' ' ' </proc/1/cmdline"
        )
        assert (code, said.split()[0]) == (0, "tini")

        async def check() -> bool:
            found = states(server.namespace)
            return "Z" not in found and len(found) >= 2

        await asyncio.sleep(0.5)  # the orphan has ended by now
        await eventually(check, within_s=5, what="nothing is left unreaped")
        assert await server.stop() == 0
        await gone({server.namespace}, within_s=2)


async def test_a_volume_mounted_read_only_does_not_make_it_hang(runtime: Image) -> None:
    env = {"OPENCODE_MCP_SERVER_URL": "http://127.0.0.1:9"}
    container = Container(runtime, env=env, mounts=["tmpfs:ro,mode=1777:/data"])
    code, _, _ = await run_to_end(container, within_s=GONE_WITHIN_S, stdin=b"")
    assert code == 1


async def test_nothing_but_json_rpc_is_on_stdout_whatever_a_library_prints(
    runtime: Image, tmp_path: Path
) -> None:
    noise = tmp_path / "noise"
    noise.mkdir()
    (noise / "sitecustomize.py").write_text(NOISE, encoding="utf-8")
    hello: Json = {"protocolVersion": "2025-06-18", "capabilities": {}}
    hello |= {"clientInfo": {"name": "noise", "version": "1"}}
    messages: list[Json] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "opencode-status", "arguments": {}}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in messages)
    env = {"OPENCODE_MCP_SERVER_URL": "http://127.0.0.1:9", "PYTHONPATH": "/noise"}
    mounts = [f"bind-ro:{noise}:/noise", "tmpfs:mode=1777:/data"]
    container = Container(runtime, env=env, mounts=mounts)
    code, out, err = await run_to_end(container, within_s=60, stdin=lines.encode())
    assert code == 0, err
    assert {json.loads(line)["id"] for line in out.splitlines()} == {1, 2}
    for name in ("fastmcp", "aiohttp", "opencode_mcp.engine.engine"):
        assert f"hello from {name}" in err

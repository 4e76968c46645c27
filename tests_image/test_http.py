"""`docker run IMAGE` with TRANSPORT=http: health, a reverse proxy in front, and the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from typing import TYPE_CHECKING

import aiohttp
import pytest

from tests.support.http_bridge import HttpServer
from tests.support.polling import eventually
from tests_image.support.clients import over_stdio
from tests_image.support.container import Container, namespaces, process_1, running
from tests_image.support.nginx import open_nginx
from tests_image.support.opencode import Opencode, open_opencode, ready, well

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json, ScriptedModel
    from tests_image.support.image import Image

TOKEN = "0123456789abcdef-token"
PORT, NGINX_PORT, DEAF_PORT = 8000, 8080, 8081
#: an nginx that does not listen to us
IGNORING = "proxy_ignore_headers X-Accel-Buffering;"
#: the issue's line: what the server says while it streams reaches the client behind nginx
REACHES_WITHIN_S = 2.0
ENDLESS = "SLOW:100000"


def http_container(
    image: Image, volume: Path, opencode: Opencode | None = None, **settings: str
) -> Container:
    """Return one that serves over HTTP; without an OpenCode it is attached to nothing."""
    env = {f"OPENCODE_MCP_{name}": value for name, value in settings.items()}
    env.setdefault("OPENCODE_MCP_TRANSPORT", "http")
    env.setdefault("OPENCODE_MCP_AUTH_TOKENS", f"alice:{TOKEN}")
    attached = {"OPENCODE_MCP_SERVER_URL": "http://127.0.0.1:9"}
    mounts = [f"bind:{volume}:/data"]
    if opencode is not None:
        attached = opencode.settings
        mounts += opencode.mounts
    return Container(image, env=attached | env, mounts=mounts)


def child_of(pid: int) -> int:
    """Return the only child of a container's process 1: the server itself."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:  # noqa: PTH123
        return int(children.read().split()[0])


@pytest.mark.parametrize(
    ("settings", "file"),
    [
        pytest.param({}, "", id="as-it-comes"),
        pytest.param({"PORT": "9123"}, "", id="port"),
        pytest.param({"HOST": "127.0.0.1", "PORT": "9124"}, "", id="loopback"),
        pytest.param({"HOST": "::"}, "", id="all-of-ipv6"),
        pytest.param({"TRANSPORT": ""}, 'transport = "HTTP"\nport = 9125\n', id="file"),
    ],
)
async def test_health_follows_the_server(
    runtime: Image, tmp_path: Path, settings: dict[str, str], file: str
) -> None:
    """Case 35: set by variables or by a file; and it notices a server that hangs."""
    volume = runtime.fresh_volume(tmp_path / "data")
    if file:
        (volume / ".config" / "opencode-mcp").mkdir()
        (volume / ".config" / "opencode-mcp" / "config.toml").write_text(file, encoding="utf-8")
    container = http_container(runtime, volume, None, **settings)
    async with running(container, tmp_path / "log") as server:
        await well(server)
        os.kill(child_of(server.pid), signal.SIGSTOP)
        code, said = await server.health()
        assert code == 1
        assert "/healthz does not answer" in said
        os.kill(child_of(server.pid), signal.SIGCONT)
        await well(server)
        assert await server.stop() == 0
        assert "Traceback" not in server.said()


async def test_health_of_a_container_in_which_nothing_serves(
    runtime: Image, tmp_path: Path
) -> None:
    container = Container(runtime, entrypoint=("tini", "--", "sleep", "60"))
    async with running(container, tmp_path / "log") as server:
        assert await server.health() == (1, "no opencode-mcp serves in this container\n")


async def test_health_over_stdio_is_its_process(
    managed: Callable[..., Container], tmp_path: Path
) -> None:
    """There is no port to ask; and a command that is run beside it does not count."""
    container = managed()
    async with over_stdio(container, tmp_path / "log"):
        (namespace,) = namespaces()
        pid = process_1(namespace)
        assert pid is not None
        test = container.image.config["Healthcheck"]["Test"][1:]
        check = await asyncio.create_subprocess_exec(*container.exec_argv(pid, test))
        assert await check.wait() == 0


async def test_a_session_over_http_and_an_end_in_order(
    runtime: Image, bundled: Image, model: ScriptedModel, workspace: Path, tmp_path: Path
) -> None:
    """Attached: folders are OpenCode's own, and a call that runs is answered before the end."""
    volume = runtime.fresh_volume(tmp_path / "data")
    async with (
        open_opencode(bundled, tmp_path / "opencode", workspace, model.url) as opencode,
        running(http_container(runtime, volume, opencode), tmp_path / "log") as server,
    ):
        await well(server)
        http = HttpServer(f"http://127.0.0.1:{PORT}")
        await ready(http)
        async with http.stack:
            caller = await http.caller(TOKEN)
            answer = await caller.call("opencode", prompt="SAY:over http")
            assert answer.status == "completed"
            assert answer.structured["directory"] == "/workspace", "OpenCode's own folder"
            watched = await caller.call("opencode", prompt=ENDLESS, wait_seconds=0)
            assert watched.status == "running"
            watching = asyncio.create_task(
                caller.call("opencode-status", sessionId=watched.session_id, wait_seconds=60)
            )
            await eventually(_streams(model), what="the turn runs")
            began = time.monotonic()
            assert await server.stop() == 0
            assert time.monotonic() - began < 10, "docker stop would have killed it"
            assert (await watching).status == "running"
            await eventually(_streams(model, are=False), what="the turn was stopped")


def _streams(model: ScriptedModel, *, are: bool = True) -> Callable[[], asyncio.Future[bool]]:
    async def check() -> bool:
        return bool(model.open_streams) == are

    return lambda: asyncio.ensure_future(check())


async def test_nginx_passes_on_what_is_streamed_at_once(  # noqa: PLR0913, PLR0917 - fixtures
    runtime: Image,
    bundled: Image,
    model: ScriptedModel,
    workspace: Path,
    tmp_path: Path,
    measures: list[str],
) -> None:
    """Case 32: its defaults hold answers back until 4 or 8 KB are there; our headers say no."""
    volume = runtime.fresh_volume(tmp_path / "data")
    async with open_opencode(bundled, tmp_path / "opencode", workspace, model.url) as opencode:
        container = http_container(runtime, volume, opencode, ALLOWED_HOSTS="mcp.example.org")
        async with (
            running(container, tmp_path / "log") as server,
            open_nginx(tmp_path / "nginx", port=NGINX_PORT, behind=PORT),
            open_nginx(tmp_path / "deaf", port=DEAF_PORT, behind=PORT, more=IGNORING),
        ):
            await well(server)
            await _first_progress(PORT)  # the first turn of an OpenCode takes seconds
            direct = await _first_progress(PORT)
            proxied = await _first_progress(NGINX_PORT)
            measures.append(
                f"first progress of a call: {direct.s:.2f} s, behind nginx {proxied.s:.2f} s"
            )
            assert direct.headers["x-accel-buffering"] == "no"
            assert direct.headers["cache-control"] == "no-cache"
            assert proxied.headers["cache-control"] == "no-cache"
            assert proxied.headers["server"].startswith("nginx")
            assert proxied.s < REACHES_WITHIN_S
            with pytest.raises(TimeoutError):  # it is our header that does it
                await _first_progress(DEAF_PORT, within_s=2 * REACHES_WITHIN_S)
            await server.stop()


class _First:
    """What came first of an answer that goes on, and when."""

    def __init__(self, s: float, headers: dict[str, str]) -> None:
        self.s = s
        self.headers = headers


async def _first_progress(port: int, *, within_s: float = 60) -> _First:
    """Make a call that watches a turn without end; return its first progress, and hang up."""
    began = time.monotonic()
    async with (
        asyncio.timeout(within_s),
        aiohttp.ClientSession() as session,
        session.post(
            f"http://127.0.0.1:{port}/mcp",
            json=_call("opencode", prompt=ENDLESS, **{"wait-seconds": 60}),
            headers={
                "host": "mcp.example.org",
                "accept": "application/json, text/event-stream",
                "authorization": f"Bearer {TOKEN}",
            },
        ) as answer,
    ):
        assert answer.status == 200, await answer.text()
        said = await answer.content.readuntil(b"\r\n\r\n")
        assert b"notifications/progress" in said
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return _First(time.monotonic() - began, headers)


def _call(tool: str, **arguments: object) -> Json:
    params: Json = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


async def test_a_public_name_behind_a_proxy_is_refused_with_the_setting_that_lets_it_in(
    runtime: Image, tmp_path: Path
) -> None:
    """Case B41: 421 as it comes, while health is well under any name; then the name is set."""
    volume = runtime.fresh_volume(tmp_path / "data")
    hosts = {"host": "mcp.example.test", "authorization": f"Bearer {TOKEN}"}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    http = HttpServer(f"http://127.0.0.1:{NGINX_PORT}")
    async with open_nginx(tmp_path, port=NGINX_PORT, behind=PORT):
        async with running(http_container(runtime, volume), tmp_path / "log") as server:
            await well(server)
            refused = await http.post(listing, **hosts)
            assert refused.status == 421
            assert "OPENCODE_MCP_ALLOWED_HOSTS" in refused.text
            assert "mcp.example.test" in refused.text
            lines = [json.loads(line) for line in server.said().splitlines()]
            logged = [line for line in lines if line.get("host") == "mcp.example.test"]
            assert logged[0]["setting"] == "OPENCODE_MCP_ALLOWED_HOSTS"
            assert (await http.get("/healthz", host="anything.test")).status == 200
            await server.stop()
        allowed = http_container(
            runtime, volume, ALLOWED_HOSTS="bridge:8000,127.0.0.1:*,mcp.example.test"
        )
        async with running(allowed, tmp_path / "second") as server:
            await well(server)
            for name in ("bridge:8000", "127.0.0.1:49152", "mcp.example.test"):
                assert (await http.post(listing, **hosts | {"host": name})).status == 200, name
            assert (await http.post(listing, **hosts | {"host": "evil.test"})).status == 421
            await server.stop()


async def test_a_listener_for_all_without_tokens_does_not_start(
    runtime: Image, tmp_path: Path
) -> None:
    """Case 40."""
    volume = runtime.fresh_volume(tmp_path / "data")
    container = http_container(runtime, volume, AUTH_TOKENS="")
    process = await asyncio.create_subprocess_exec(
        *container.argv(), stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    _, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2
    assert b"OPENCODE_MCP_AUTH_TOKENS" in err

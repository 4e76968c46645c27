"""Our server over HTTP: in this process or as one of its own, with clients of any principal."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp
import psutil
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from opencode_mcp.app.http import listen, serving
from opencode_mcp.app.runtime import open_runtime
from opencode_mcp.settings import load_settings
from tests.support.bridge import Bridge, Era, shapes_of
from tests.support.process_bridge import COMMAND

if TYPE_CHECKING:
    import signal
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from fastmcp.client.elicitation import ElicitationHandler

    from opencode_mcp.cli.scripted_model import Json

_UP_S = 30.0


@dataclass
class HttpServer:
    """One of ours that listens."""

    origin: str
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def url(self) -> str:
        """Where its MCP endpoint is."""
        return f"{self.origin}/mcp"

    async def caller(
        self,
        token: str | None = None,
        *,
        mode: Era = "legacy",
        person: ElicitationHandler | None = None,
    ) -> Bridge:
        """Connect a client that has this token."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        client: Client[Any] = Client(
            StreamableHttpTransport(self.url, headers=headers),
            mode=mode,
            init_timeout=30,
            elicitation_handler=person,
        )
        own = await self.stack.enter_async_context(AsyncExitStack())
        await own.enter_async_context(client)
        return Bridge(client, await shapes_of(client), own)

    async def get(self, path: str, **headers: str) -> Reply:
        """GET a path; in a header's name `_` stands for `-`."""
        return await self.send("GET", path, headers=headers)

    async def send(
        self, method: str, path: str, *, headers: Mapping[str, str], body: Json | None = None
    ) -> Reply:
        """Send one request without an MCP client's help."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                method, self.origin + path, headers=named, json=body, allow_redirects=False
            ) as answer,
        ):
            lowered = {name.lower(): value for name, value in answer.headers.items()}
            return Reply(answer.status, lowered, await answer.text())

    async def post(self, message: Json, **headers: str) -> Reply:
        """Send one MCP message as it is, without a handshake."""
        accept = {"accept": "application/json, text/event-stream"}
        return await self.send("POST", "/mcp", headers=accept | headers, body=message)


@dataclass
class Reply:
    """What an HTTP request was answered."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever it is
        """The body as JSON."""
        return json.loads(self.text)


@dataclass
class HttpProcess(HttpServer):
    """One as a process of its own."""

    process: asyncio.subprocess.Process = field(kw_only=True)
    log: Path = field(kw_only=True)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    async def exit_code(self) -> int:
        """Wait until it is gone; return its exit code."""
        async with asyncio.timeout(_UP_S):
            return await self.process.wait()


@asynccontextmanager
async def open_http(env: Mapping[str, str], folder: Path) -> AsyncIterator[HttpServer]:
    """Open our server in this process, on a free port; `folder` is its working folder."""
    settings = load_settings(_http(env), cwd=folder)
    with listen(settings) as listener:
        origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with (
            open_runtime(settings, _http(env)) as runtime,
            serving(runtime, listener),
            AsyncExitStack() as stack,
        ):
            yield HttpServer(origin, stack)


@asynccontextmanager
async def run_http(
    env: Mapping[str, str], folder: Path, *, name: str
) -> AsyncIterator[HttpProcess]:
    """Start our server as a process, on a free port; `folder` gets its log."""
    log = folder / f"{name}.log"
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            str(COMMAND), env=dict(_http(env)), cwd=folder, stderr=errors
        )
    try:
        origin = await _origin(process, log)
        async with AsyncExitStack() as stack:
            yield HttpProcess(origin, stack, process=process, log=log)
    except BaseException as error:
        error.add_note(f"{log}:\n{log.read_text(encoding='utf-8')[-3000:]}")
        raise
    finally:
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            process.kill()
        await process.wait()


def _http(env: Mapping[str, str]) -> Mapping[str, str]:
    return {"OPENCODE_MCP_TRANSPORT": "http", "OPENCODE_MCP_PORT": "0", **env}


async def _origin(process: asyncio.subprocess.Process, log: Path) -> str:
    async with asyncio.timeout(_UP_S):
        while process.returncode is None:
            for line in log.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError):
                    entry = json.loads(line)
                    if entry.get("event") == "listening":
                        return f"http://{entry['host']}:{entry['port']}"
            await asyncio.sleep(0.02)
    msg = f"it ended with {process.returncode}"
    raise RuntimeError(msg)

"""Clients made with the SDKs, Python's and TypeScript's, behind one way to use them."""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitResult
from mcp_types.version import LATEST_MODERN_VERSION

from tests_clients.support.home import CLIENTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp.client.session import ClientRequestContext

    from opencode_mcp.cli.scripted_model import Json
    from tests_clients.support.home import ClientHome

#: what the person says; None: the client cannot ask one
Person: TypeAlias = Literal["accept", "decline", "cancel"] | None

_DRIVER = Path(__file__).parent / "sdk_client.mjs"
_PATIENCE_S = 120.0


class Kind(NamedTuple):
    """An SDK, and the protocol era in which it speaks."""

    sdk: Literal["python", "typescript-v1", "typescript-v2"]
    era: Literal["legacy", "modern"]


KINDS = (
    Kind("python", "legacy"),
    Kind("python", "modern"),
    Kind("typescript-v1", "legacy"),
    Kind("typescript-v2", "legacy"),
    Kind("typescript-v2", "modern"),
)


class Url(NamedTuple):
    """Where our server listens, and what it wants to hear."""

    url: str
    token: str


class Result(NamedTuple):
    """What a call brought."""

    structured: Json
    is_error: bool


class SdkClient(Protocol):
    """A connected client."""

    #: the protocol version that was agreed upon
    version: str
    #: what the person was asked
    asked: list[str]

    async def call(
        self, tool: str, arguments: Json, on_progress: Callable[[], None] | None = None
    ) -> Result:
        """Call a tool; to cancel this is to cancel the call."""


@asynccontextmanager
async def connected(
    kind: Kind, home: ClientHome, server: Url | None, person: Person = None
) -> AsyncIterator[SdkClient]:
    """Connect a client to a server at an address, or let it start one in its home."""
    connect = _python if kind.sdk == "python" else _typescript
    async with connect(kind, home, server, person) as client:
        assert (client.version == LATEST_MODERN_VERSION) == (kind.era == "modern")
        yield client


class _PythonClient:
    def __init__(self, person: Person) -> None:
        self.version = ""
        self.asked: list[str] = []
        self._person = person
        self.client: Client | None = None

    async def answer(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        del context
        self.asked.append(params.message)
        assert self._person is not None
        content: Any = {} if self._person == "accept" else None
        return ElicitResult(action=self._person, content=content)

    async def call(
        self, tool: str, arguments: Json, on_progress: Callable[[], None] | None = None
    ) -> Result:
        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            del progress, total, message
            assert on_progress is not None
            on_progress()

        assert self.client is not None
        found = await self.client.call_tool(
            tool, arguments, _PATIENCE_S, progressed if on_progress else None
        )
        return Result(dict(found.structured_content or {}), bool(found.is_error))


@asynccontextmanager
async def _python(
    kind: Kind, home: ClientHome, server: Url | None, person: Person
) -> AsyncIterator[SdkClient]:
    made = _PythonClient(person)
    async with AsyncExitStack() as stack:
        if server is None:
            errors = stack.enter_context((home.path / "server.log").open("w", encoding="utf-8"))
            command = StdioServerParameters(
                command="opencode-mcp", env=home.env(), cwd=str(home.project)
            )
            transport: Any = stdio_client(command, errors)
        else:
            headers = {"Authorization": f"Bearer {server.token}"}
            http = httpx2.AsyncClient(headers=headers, timeout=_PATIENCE_S)
            await stack.enter_async_context(http)
            transport = streamable_http_client(server.url, http_client=http)
        mode = LATEST_MODERN_VERSION if kind.era == "modern" else "legacy"
        callback = made.answer if person else None
        client = Client(transport, mode=mode, elicitation_callback=callback)
        made.client = await stack.enter_async_context(client)
        made.version = str(made.client.protocol_version)
        yield made


class _TypescriptClient:
    """Leads `sdk_client.mjs`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.version = ""
        self.asked: list[str] = []
        self.is_connected = asyncio.Event()
        self._process = process
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Json]] = {}
        self._on_progress: dict[int, Callable[[], None]] = {}

    async def call(
        self, tool: str, arguments: Json, on_progress: Callable[[], None] | None = None
    ) -> Result:
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        if on_progress is not None:
            self._on_progress[number] = on_progress
        options = {"progress": on_progress is not None}
        self._send({"id": number, "tool": tool, "arguments": arguments, "options": options})
        try:
            answer = await self._answers[number]
        except asyncio.CancelledError:
            self._send({"cancel": number})
            raise
        assert "result" in answer, answer["error"]
        found = answer["result"]
        return Result(found.get("structuredContent", {}), bool(found.get("isError")))

    def _send(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def read(self) -> None:
        """Take what the process says, until it ends."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            message = json.loads(line)
            if "connected" in message:
                self.version = message["connected"]
                self.is_connected.set()
            elif "asked" in message:
                self.asked.append(message["asked"])
            elif "progress" in message:
                self._on_progress[message["progress"]]()
            elif not self._answers[message["id"]].done():  # else it was given up
                self._answers[message["id"]].set_result(message)


@asynccontextmanager
async def _typescript(
    kind: Kind, home: ClientHome, server: Url | None, person: Person
) -> AsyncIterator[SdkClient]:
    where = {"command": "opencode-mcp"} if server is None else server._asdict()
    wanted = {"sdk": kind.sdk.removeprefix("typescript-"), "era": kind.era, "elicit": person}
    argument = json.dumps({"modules": str(CLIENTS.parent), **where, **wanted})
    argv = ("node", str(_DRIVER), argument)
    async with home.started(*argv, takes_input=True) as process:
        client = _TypescriptClient(process)
        reading = asyncio.create_task(client.read())
        waiting = asyncio.create_task(client.is_connected.wait())
        async with asyncio.timeout(_PATIENCE_S):
            await asyncio.wait({reading, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if reading.done():
            assert process.stderr is not None
            raise AssertionError((await process.stderr.read()).decode()[-3000:])
        yield client
        assert process.stdin is not None
        process.stdin.close()
        await asyncio.gather(reading, process.wait())

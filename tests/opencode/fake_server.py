"""A difficult peer: a real HTTP server on 127.0.0.1 that answers as the test tells it to.

It is no OpenCode and knows none of its rules. It shows what arrived, byte for byte, and can be
rude: hang, drip, cut, reset, flood, redirect, or open an event stream and never speak.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from aiohttp import web

from opencode_mcp.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from types import TracebackType

    Behaviour = Callable[["FakeServer", web.Request], Awaitable[web.StreamResponse]]

PAGE = "<!doctype html><title>the web app</title>"


@dataclass(frozen=True)
class Seen:
    """A request as it arrived; `target` is the raw path with its query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Stream:
    """The server's end of one event stream."""

    def __init__(self) -> None:
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        #: set once the client is gone
        self.closed = asyncio.Event()

    def raw(self, chunk: bytes) -> None:
        """Send bytes as they are."""
        self._chunks.put_nowait(chunk)

    def send(self, kind: str, **properties: object) -> None:
        """Send an event as OpenCode 1.18.33 writes it."""
        self.raw(frame(kind, **properties))

    def sync(self, kind: str, session_id: str) -> None:
        """Send the copy that OpenCode makes of a stored change."""
        copied = {"id": "evt_1", "type": f"{kind}.1", "seq": 1, "aggregateID": session_id}
        payload = {"type": "sync", "syncEvent": copied | {"data": {"sessionID": session_id}}}
        self.raw(_sse({"directory": "/p", "project": "global", "payload": payload}))

    async def drip_comments(self) -> None:
        """Keep sending bytes that are no event, until the client goes."""
        while not self.closed.is_set():
            self.raw(b": still here\n\n")
            await asyncio.sleep(0.01)

    def end(self) -> None:
        """End the stream as a server does that shuts down in order."""
        self._chunks.put_nowait(None)

    async def pump(self, response: web.StreamResponse) -> web.StreamResponse:
        """Write what the test sends until it ends the stream."""
        while (chunk := await self._chunks.get()) is not None:
            await response.write(chunk)
        return response


def frame(kind: str, **properties: object) -> bytes:
    """Make an event of the global stream: directory, project, payload (facts 3.2)."""
    payload = {"id": "evt_1", "type": kind, "properties": properties}
    return _sse({"directory": "/p", "project": "global", "payload": payload})


def _sse(event: object) -> bytes:
    return b"data: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n"


class FakeServer:
    """An async context manager. `script` what it does next; the last behaviour stays."""

    def __init__(self, port: int = 0) -> None:
        self.seen: list[Seen] = []
        #: set when a behaviour that never answers was reached
        self.reached = asyncio.Event()
        #: streams that were opened, in order
        self.streams: asyncio.Queue[Stream] = asyncio.Queue()
        #: a stream says `server.connected` at once, as OpenCode does
        self.streams_speak = True
        self._closing = asyncio.Event()
        self._behaviours: deque[Behaviour] = deque([says({})])
        self._port = port
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port}"

    def script(self, *behaviours: Behaviour) -> None:
        """Answer the next requests like this, one after the other."""
        self._behaviours = deque(behaviours)

    def count(self, method: str) -> int:
        """How many requests with this method arrived."""
        return sum(one.method == method for one in self.seen)

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/global/event", self._events)
        app.router.add_route("*", "/{rest:(?s:.*)}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def until_closed(self) -> None:
        """Never answer, until the test is over."""
        self.reached.set()
        await self._closing.wait()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        seen = Seen(request.method, request.raw_path, dict(request.headers), await request.read())
        self.seen.append(seen)
        behaviour = self._behaviours.popleft() if len(self._behaviours) > 1 else self._behaviours[0]
        return await behaviour(self, request)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        stream = Stream()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if self.streams_speak:
            await response.write(frame("server.connected"))
        self.streams.put_nowait(stream)
        pump = asyncio.create_task(stream.pump(response))
        closing = asyncio.create_task(self._closing.wait())
        try:
            await asyncio.wait({pump, closing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pump.cancel()
            closing.cancel()
            await asyncio.wait({pump, closing})
            stream.closed.set()
        return response


def says(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Behaviour:
    """Answer with JSON."""
    return says_raw(json.dumps(body).encode(), "application/json", status, headers)


def says_raw(
    body: bytes, content_type: str, status: int = 200, headers: Mapping[str, str] | None = None
) -> Behaviour:
    """Answer with these bytes."""

    async def behave(_server: FakeServer, _request: web.Request) -> web.StreamResponse:
        return web.Response(
            status=status, body=body, headers={"Content-Type": content_type, **(headers or {})}
        )

    return behave


def says_nothing(status: int, headers: Mapping[str, str] | None = None) -> Behaviour:
    """Answer without a body, as OpenCode does for a 204 and a 401."""

    async def behave(_server: FakeServer, _request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers=headers)

    return behave


async def shows_the_web_app(_server: FakeServer, _request: web.Request) -> web.StreamResponse:
    """Do as OpenCode does for an unknown route (facts 8.2)."""
    return web.Response(text=PAGE, content_type="text/html")


async def hangs(server: FakeServer, _request: web.Request) -> web.StreamResponse:
    """Take the request and never answer."""
    await server.until_closed()
    return web.Response()


async def drips(server: FakeServer, request: web.Request) -> web.StreamResponse:
    """Begin a JSON body and send one byte now and then, for ever."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b"[")
    server.reached.set()
    while not request.transport or not request.transport.is_closing():
        await response.write(b" ")
        await asyncio.sleep(0.01)
    return response


async def floods(_server: FakeServer, request: web.Request) -> web.StreamResponse:
    """Send a body without a declared length that is larger than any limit for lists."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    for _ in range(5 * 16):
        await response.write(b" " * 65536)
    return response


async def boasts(server: FakeServer, request: web.Request) -> web.StreamResponse:
    """Declare a body of a gigabyte and send nothing of it."""
    response = web.StreamResponse(
        headers={"Content-Type": "application/json", "Content-Length": str(1024**3)}
    )
    await response.prepare(request)
    await server.until_closed()
    return response


async def cuts(_server: FakeServer, request: web.Request) -> web.StreamResponse:
    """Declare a body and break the connection in its middle."""
    response = web.StreamResponse(
        headers={"Content-Type": "application/json", "Content-Length": "100"}
    )
    await response.prepare(request)
    await response.write(b'{"id":')
    _break(request)
    return response


async def resets(_server: FakeServer, request: web.Request) -> web.StreamResponse:
    """Read the request and break the connection instead of answering."""
    _break(request)
    return web.Response()


def _break(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def free_port() -> int:
    """Return a port on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class QuickClock(Clock):
    """Time that passes only when somebody sleeps, and at once; remembers how long they slept."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._passed = 0.0

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._passed += seconds
        await asyncio.sleep(0)

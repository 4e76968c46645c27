"""A reverse proxy before the real OpenCode that can refuse, hang, answer 503, and that counts."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import aiohttp
from aiohttp import web

if TYPE_CHECKING:
    from types import TracebackType

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


@dataclass(slots=True)
class Seen:
    """One request that came by. `status` is None until it is answered, if ever."""

    method: str
    path: str
    status: int | None = None


@dataclass(slots=True)
class _Fault:
    method: str
    pattern: re.Pattern[str]
    status: int
    left: int


class FaultyProxy:
    """An async context manager on a free loopback port; honest until told otherwise."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._faults: list[_Fault] = []
        self._answering: set[asyncio.Transport] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._refusing = False
        self.port = 0
        #: all requests since the start, or since `seen.clear()`
        self.seen: list[Seen] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False
        )
        app = web.Application(client_max_size=1 << 28)
        app.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await self._runner.setup()
        await self._listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._flowing.set()
        await self._runner.cleanup()
        await self._http.close()

    async def refuse(self) -> None:
        """Refuse new connections and break the open ones: OpenCode is down."""
        self._refusing = True
        await self._site.stop()
        for transport in list(self._answering):
            transport.abort()

    async def hang(self) -> None:
        """Accept everything and answer nothing: OpenCode hangs."""
        self._flowing.clear()

    async def recover(self) -> None:
        """Be honest again."""
        self._faults.clear()
        self._flowing.set()
        if self._refusing:
            self._refusing = False
            await self._listen()

    def fail(self, method: str, pattern: str, *, status: int = 503, times: int) -> None:
        """Answer the next `times` matching requests with this status, without passing them on."""
        self._faults.append(_Fault(method, re.compile(pattern), status, times))

    def requests(self, method: str, pattern: str) -> list[Seen]:
        """Return the matching requests that came by."""
        return [
            seen for seen in self.seen if seen.method == method and re.search(pattern, seen.path)
        ]

    async def _listen(self) -> None:
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await self._site.start()
        self.port = int(self._runner.addresses[0][1])

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        seen = Seen(request.method, request.path_qs)
        self.seen.append(seen)
        transport = request.transport
        if transport is None or self._refusing:
            if transport is not None:
                transport.abort()
            raise asyncio.CancelledError
        self._answering.add(transport)
        try:
            await self._flowing.wait()
            fault = self._fault(request)
            if fault is not None:
                seen.status = fault.status
                return web.json_response({"error": "told to fail"}, status=fault.status)
            return await self._forward(request, seen)
        finally:
            self._answering.discard(transport)

    def _fault(self, request: web.Request) -> _Fault | None:
        for fault in self._faults:
            matches = fault.method == request.method and fault.pattern.search(request.path)
            if matches and fault.left > 0:
                fault.left -= 1
                return fault
        return None

    async def _forward(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in _HOP_BY_HOP
        }
        async with self._http.request(
            request.method,
            self._upstream + request.raw_path,
            headers=headers,
            data=await request.read() if request.can_read_body else None,
            allow_redirects=False,
        ) as answer:
            response = web.StreamResponse(status=answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    response.headers[name] = value
            await response.prepare(request)
            with suppress(aiohttp.ClientPayloadError):
                async for chunk in answer.content.iter_any():
                    await self._flowing.wait()
                    await response.write(chunk)
            seen.status = answer.status
            return response

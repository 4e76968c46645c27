"""The twin's server: one port of 127.0.0.1, Basic auth, and the faults that a test plans.

How to use it: tests/twin/README.md.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Self

import aiohttp
from aiohttp import web

from tests.twin import bodies, faults, shapes, suffering
from tests.twin.asks import Asks
from tests.twin.events import Bus, Stream
from tests.twin.model import Model
from tests.twin.routes import Routes
from tests.twin.runs import Pace, Runs
from tests.twin.world import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from types import TracebackType

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

USERNAME = "opencode"
_MAX_BODY_BYTES = 256 * 1024 * 1024


class Twin:
    """An OpenCode for tests: an async context manager.

    `folder` is where it runs (facts 1.3: what a request without a directory means). `pace` is how
    long things take and may be changed at any time; `model_speed` makes a `SLOW` faster. `port`:
    where it listens; 0 is any that is free.
    """

    def __init__(
        self,
        folder: Path,
        *,
        password: str = "for one test",  # noqa: S107 - of a server that lives for one test
        pace: Pace | None = None,
        model_speed: float = 1.0,
        port: int = 0,
    ) -> None:
        self.username = USERNAME
        self.password = password
        self.pace = pace or Pace()
        self.model = Model(model_speed)
        #: every request that arrived, in order, also those that a fault swallowed
        self.requests: list[faults.Seen] = []
        self.bus = Bus()
        self.world = World(self.bus)
        self.asks = Asks(self.bus)
        self.runs = Runs(self.world, self.bus, self.asks, self.model, self.pace)
        self._routes = Routes(self.runs, str(folder))
        self._plans: list[faults.Planned] = []
        self._port = port
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self._effects: set[asyncio.Task[web.StreamResponse]] = set()
        self._restarts: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where it listens; the same after a restart."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def shells(self) -> list[str]:
        """The shell commands that run at this moment."""
        return self.runs.shells

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[self._meet])
        app.router.add_get("/global/event", self._events)
        app.router.add_get("/event", self._events)
        self._routes.add_to(app.router)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await self._runner.setup()
        await self.listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.heal()
        await self.runs.kill()
        if self._runner is not None:
            await self._runner.cleanup()

    def fail(
        self,
        fault: faults.Fault,
        *,
        method: str | None = None,
        path: str | None = None,
        nth: int = 1,
        times: int | None = 1,
    ) -> faults.Planned:
        """Plan a fault for the `nth` request from now on that matches, and `times` in all.

        `path` is a regular expression searched in the path; without it every request but those
        for event streams matches. `times=None`: until `Planned.release`.
        """
        pattern = None if path is None else re.compile(path)
        planned = faults.Planned(fault, method, pattern, nth, times)
        self._plans.append(planned)
        return planned

    def heal(self) -> None:
        """Release every fault that was planned."""
        for plan in self._plans:
            plan.release()

    def drop_streams(self) -> None:
        """End every event stream in order; clients may open new ones."""
        self.bus.end_all()

    def lines(self, since: int = 0) -> list[str]:
        """Return "METHOD /path" of every request after the first `since`, streams left out."""
        later = self.requests[since:]
        return [seen.line for seen in later if not faults.STREAM.search(seen.path)]

    def compact_next(self, session_id: str) -> None:
        """Compact the session's history after its next step, as if its context were full."""
        self.runs.compactor.plan(session_id)

    async def listen(self) -> None:
        """Take connections, again if it stopped; on the same port."""
        if self._site is None and self._runner is not None:
            self._site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
            await self._site.start()
            self._port = int(self._runner.addresses[0][1])

    async def refuse(self) -> None:
        """Refuse every new connection and break those that exist; what runs goes on."""
        if self._site is not None:
            await self._let_accepts_finish(self._site)
            await self._site.stop()
            self._site = None
        self._break_connections()

    @staticmethod
    async def _let_accepts_finish(site: web.TCPSite) -> None:
        """Accept no more, and wait for what was accepted a moment ago.

        asyncio (3.11) forgets a connection, and leaves it open, whose server is closed between the
        two steps in which it is accepted.
        """
        server = site._server  # noqa: SLF001 - aiohttp has no other way to its listening sockets
        for listening in getattr(server, "sockets", ()):
            asyncio.get_running_loop().remove_reader(listening.fileno())
        for _ in range(3):
            await asyncio.sleep(0)

    async def kill(self) -> None:
        """Die as by kill -9: memory and connections are gone, the data stays (facts 9.1, 9.2)."""
        await self.refuse()
        await self.runs.kill()

    async def restart(self) -> None:
        """Die and come back on the same port with the same data."""
        await self.kill()
        await self.listen()

    def _break_connections(self) -> None:
        server = None if self._runner is None else self._runner.server
        for connection in [] if server is None else [*server.connections]:
            if connection.transport is not None:
                connection.transport.abort()

    @web.middleware
    async def _meet(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note a request, let the planned fault happen to it, or answer it."""
        raw = await bodies.read(request)
        query = dict(request.query)
        number = len(self.requests) + 1
        seen = faults.Seen(number, request.method, request.path, query, raw or None)
        self.requests.append(seen)
        hit = [plan for plan in self._plans if plan.takes(seen)]
        if not hit:
            return await self._act(request, handler)
        return await self._suffer(hit[0], request, handler)

    async def _act(self, http: web.Request, handler: Handler) -> web.StreamResponse:
        """Do what is asked. It goes on when its caller leaves (facts 2.7)."""
        if not self._is_authorized(http):
            return shapes.unauthorized()
        if faults.STREAM.search(http.path):
            return await handler(http)
        effect = asyncio.ensure_future(handler(http))
        self._effects.add(effect)
        effect.add_done_callback(self._effects.discard)
        return await asyncio.shield(effect)

    def _is_authorized(self, http: web.Request) -> bool:
        expected = aiohttp.encode_basic_auth(self.username, self.password)
        given = http.headers.get("Authorization") or f"Basic {http.query.get('auth_token')}"
        return given == expected

    async def _suffer(
        self, plan: faults.Planned, http: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """Let the fault happen; its effect comes first where the fault says so."""
        fault = plan.fault
        if isinstance(fault, faults.DropStreams):
            self.drop_streams()
        done = await self._act(http, handler) if faults.acts_first(fault) else None
        match fault:
            case faults.Hang():
                await plan.released.wait()
                done = done or await self._act(http, handler)
            case faults.Silence():
                done = await suffering.say_nothing(http, plan.released)
            case faults.Refuse():
                self._later(self.refuse())
            case faults.Restart():
                self._later(self.restart())
                await asyncio.Event().wait()  # the connection breaks under it
            case faults.DropStreams():
                pass
            case _:
                done = await suffering.answer_badly(fault, http, done)
        return done or web.Response()

    def _later(self, work: Awaitable[None]) -> None:
        """Do it beside this request, which it will break."""
        task = asyncio.ensure_future(work)
        self._restarts.add(task)
        task.add_done_callback(self._restarts.discard)

    async def _events(self, http: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        is_global = http.path == "/global/event"
        stream = Stream(None if is_global else self._routes.directory(http))
        stream.greet("server.connected")
        # What happens just after it is lost: measured. So the stream is heard first, then hears.
        hears = asyncio.get_running_loop().call_later(
            self.pace.connecting_s, self.bus.streams.add, stream
        )
        try:
            await stream.pump(response, self.pace.heartbeat_s)
        except ConnectionError:
            pass  # the listener went
        finally:
            hears.cancel()
            self.bus.streams.discard(stream)
        return response

"""Serve any number of clients over HTTP until a signal comes.

uvicorn serves, the signals are ours: FastMCP's own way to serve never reaches its end, and uvicorn
cuts streams at once (FastMCP facts 7.2, 7.3). So the answers under way are given first, within the
times of `engine/closing.py`; then the listener closes, and the turns of this process are parted
with. Exit code 0.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING

import uvicorn

from opencode_mcp.app.exiting import Exit
from opencode_mcp.app.readiness import Readiness
from opencode_mcp.app.runtime import open_runtime
from opencode_mcp.app.web import build_app
from opencode_mcp.callers.server import build_server
from opencode_mcp.engine.closing import WRITTEN_BY_S
from opencode_mcp.errors import ListenError, OpencodeMcpError
from opencode_mcp.log_events import Event, tell, tell_failure
from opencode_mcp.records import InstanceKind
from opencode_mcp.settings_model import variable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Mapping

    from opencode_mcp.app.runtime import Runtime
    from opencode_mcp.settings import Settings

log = logging.getLogger(__name__)

#: so often it is looked whether all answers are given
_LOOK_S = 0.02
#: connections that do not close by themselves are cut after this
_CUT_AFTER_S = 1
#: An idle connection stays open for this long: longer than clients (some seconds) and proxies (60 s
#: is common) keep one for their next request. Closed by us in the moment in which it is used again,
#: it costs that request, and no client may send a tool call twice. uvicorn's own is 5 s.
_IDLE_S = 75


async def serve_http(settings: Settings, environ: Mapping[str, str]) -> None:
    """Serve over HTTP; return when it is time to exit.

    Raises ListenError, and a StoreError when the tracking database cannot be used.
    """
    leaving = Exit()
    with listen(settings) as listener:
        async with (
            open_runtime(settings, environ, leaving.closing) as runtime,
            serving(runtime, listener) as server,
        ):
            asked = asyncio.create_task(leaving.closing.wait(), name="exit")
            await asyncio.wait({server, asked}, return_when=asyncio.FIRST_COMPLETED)
            stopped_by_itself = not leaving.closing.is_begun
            asked.cancel()
            leaving.begin(refuse=True)
    if stopped_by_itself:
        msg = "the HTTP server stopped by itself: its log lines say why"
        raise ListenError(msg)


@contextmanager
def listen(settings: Settings) -> Generator[socket.socket, None, None]:
    """Take the address, before anything else is opened. Raises ListenError."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        msg = (
            f"cannot listen at {settings.host} port {settings.port}: {error.strerror or error};"
            f" set another {variable('host')} or {variable('port')}"
        )
        raise ListenError(msg) from error
    with listener:
        yield listener


@asynccontextmanager
async def serving(runtime: Runtime, listener: socket.socket) -> AsyncIterator[asyncio.Task[None]]:
    """Serve the tools at `listener`; leaving answers what is under way, and then closes it.

    Yields the task that serves, which only ends by itself if something is very wrong.
    """
    settings = runtime.settings
    async with _readiness(runtime) as readiness:
        server = _Server(_config(runtime, readiness))
        task = asyncio.create_task(server.serve(sockets=[listener]), name="http")
        host, port = listener.getsockname()[:2]
        tell(log, Event.LISTENING, host=host, port=port, path=settings.http_path)
        try:
            yield task
        finally:
            runtime.closing.begin(refuse=True)
            # uvicorn tells nobody when the last one is done
            while server.server_state.tasks and runtime.closing.left_s(WRITTEN_BY_S):  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_S)
            server.should_exit = True
            await asyncio.gather(task)


class _CutShort(logging.Filter):
    """Drops uvicorn's two complaints about a request that was still being sent at our exit."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep all that is not about requests which we cut short on purpose."""
        error = record.exc_info[1] if record.exc_info else None
        is_cut = isinstance(error, asyncio.CancelledError)
        return not is_cut and not str(record.msg).startswith("Cancel %s running task(s)")


class _Server(uvicorn.Server):
    """uvicorn, which leaves the signals of this process alone."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def _config(runtime: Runtime, readiness: Readiness) -> uvicorn.Config:
    logging.getLogger("uvicorn.error").addFilter(_CutShort())
    return uvicorn.Config(
        build_app(build_server(runtime), runtime.settings, readiness, runtime.metrics),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=_CUT_AFTER_S,
        timeout_keep_alive=_IDLE_S,
    )


@asynccontextmanager
async def _readiness(runtime: Runtime) -> AsyncIterator[Readiness]:
    """Start a managed OpenCode now (contract §4, `MODE`), and tell whether all is ready."""
    readiness = Readiness(
        database=runtime.check_database,
        opencode=runtime.check_opencode,
        closing=runtime.closing,
    )
    warming = None
    if runtime.settings.mode is InstanceKind.MANAGED:
        warming = asyncio.create_task(_warm(runtime), name="start OpenCode")
    try:
        yield readiness
    finally:
        if warming is not None:
            warming.cancel()
            with suppress(asyncio.CancelledError):
                await warming
        await readiness.close()


async def _warm(runtime: Runtime) -> None:
    try:
        await runtime.check_opencode()
    except OpencodeMcpError as error:  # the next call, or probe, tries again
        tell(log, Event.NOT_READY, part="opencode", why=str(error))
    except Exception as error:  # noqa: BLE001 - top of a task: the callers must still be served
        tell_failure(log, error, where="the start of OpenCode")

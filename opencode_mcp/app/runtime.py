"""Put the parts together and own their lifetimes.

Opened at once: the lock of this process and the tracking database, since nothing may run without
tracking. Built at the first call that needs it: the engine with its HTTP client, so that a client
that only lists the tools does not wait for what it does not use.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from opencode_mcp import __version__
from opencode_mcp.app.background import in_background
from opencode_mcp.app.presence import Presence
from opencode_mcp.app.purging import keep_purging, purge
from opencode_mcp.callers.service import OwnDirectory
from opencode_mcp.clock import Clock
from opencode_mcp.engine.closing import Closing
from opencode_mcp.engine.recovery import OLD_START
from opencode_mcp.errors import ShuttingDownError, StoreError
from opencode_mcp.log_events import Event, tell
from opencode_mcp.records import Capacity, InstanceKind
from opencode_mcp.settings import child_environment
from opencode_mcp.store.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from opencode_mcp.engine.attaching import AttachSettings
    from opencode_mcp.engine.engine import Engine
    from opencode_mcp.engine.instances import Instances
    from opencode_mcp.engine.operating import Operator
    from opencode_mcp.opencode.managed import StartSettings
    from opencode_mcp.settings import Settings

log = logging.getLogger(__name__)

#: how soon after the start, and how often, unfinished work is looked for until the engine is built;
#: not at once, since a client lists the tools then
_RESUME_LOOK_S = 3.0
#: the name of the key that seals the state of repeated calls
_STATE_KEY = "call-state"


class Runtime:
    """The running program. Gives the tools their settings and engine (`callers.service`)."""

    def __init__(  # noqa: PLR0913 - what it is made of, all by keyword
        self,
        settings: Settings,
        environ: Mapping[str, str],
        *,
        store: Store,
        presence: Presence,
        stack: AsyncExitStack,
        state_key: bytes,
        closing: Closing,
        carries_on: bool,
    ) -> None:
        self._settings = settings
        self._carries_on = carries_on
        self._state_key = state_key
        self._closing = closing
        self._environ = environ
        self._store = store
        self._presence = presence
        self._stack = stack
        self._clock = Clock()
        self._lock = asyncio.Lock()
        self._engine: Engine | None = None
        self._instances: Instances | None = None
        self._own_directory: OwnDirectory | None = None

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings

    @property
    def state_key(self) -> bytes:
        """The key that seals the state of calls which their clients repeat; 32 bytes."""
        return self._state_key

    @property
    def closing(self) -> Closing:
        """Tells when this process is about to exit."""
        return self._closing

    @property
    def store(self) -> Store:
        """The tracking database."""
        return self._store

    def operator(self) -> Operator:
        """Return what an operator may do besides what callers may."""
        from opencode_mcp.engine.operating import Operator  # noqa: PLC0415 - no caller needs it

        return Operator(
            store=self._store,
            clock=self._clock,
            holder=self._presence.name,
            is_dead_holder=self._presence.is_dead,
        )

    async def instances(self) -> Instances:
        """Return the OpenCodes within reach; builds the engine, which owns them."""
        await self.engine()
        return self._own_instances()

    async def engine(self) -> Engine:
        """Return the engine, building it if this is the first call. Starts no OpenCode.

        Raises ShuttingDownError.
        """
        async with self._lock:
            if self._engine is None:
                self._closing.check_open()
                engine = self._build()
                self._engine = await self._stack.enter_async_context(engine)
            return self._engine

    async def metrics(self) -> tuple[bytes, str]:
        """Return what a Prometheus server gets that asks now, and its content type."""
        from opencode_mcp.scrape import exposition  # noqa: PLC0415 - late: see metrics.py

        return await exposition(self._store)

    async def resume(self) -> None:
        """Build the engine as soon as there is something unfinished, though nobody calls.

        Looks at intervals: another process may die and leave its work to this one.
        """
        while self._engine is None and not self._closing.is_begun:
            await self._clock.sleep(_RESUME_LOOK_S)
            try:
                if await self._is_something_unfinished():
                    await self.engine()
            except ShuttingDownError:
                return
            except StoreError as error:
                tell(log, Event.WORK_UNREADABLE, why=str(error))

    async def _is_something_unfinished(self) -> bool:
        now = self._clock.now()
        idle_ttl_s = self._settings.session_idle_ttl_seconds
        is_attached = self._settings.mode is InstanceKind.ATTACH  # else it would start OpenCode
        idle_since = now - timedelta(seconds=idle_ttl_s)
        return bool(
            await self._store.endings(now, 1)
            or await self._store.open_turns()
            or (idle_ttl_s and await self._store.idle_sessions(idle_since, 1))
            or (is_attached and await self._store.has_starts(now - OLD_START))
        )

    async def own_directory(self) -> OwnDirectory:
        """Return the folder of the OpenCode that we are attached to, asking it once."""
        instances = await self.instances()
        if self._own_directory is None:
            paths = await (await instances.own()).client.paths()
            self._own_directory = OwnDirectory(paths.directory, paths.home or "/")
        return self._own_directory

    async def check_database(self) -> None:
        """Write something: a full disk can still be read. Raises a StoreError."""
        await self._store.check_writable()

    async def check_opencode(self) -> None:
        """Ask our OpenCode for a sign of life, starting a managed one if need be.

        Raises what `Instances.own` raises.
        """
        await self.engine()
        await (await self._own_instances().own()).client.health()

    def _own_instances(self) -> Instances:
        if self._instances is None:
            msg = "the engine was built without instances"
            raise RuntimeError(msg)
        return self._instances

    def _build(self) -> Engine:
        from opencode_mcp.engine.engine import Engine  # noqa: PLC0415 - late
        from opencode_mcp.engine.instances import Instances  # noqa: PLC0415
        from opencode_mcp.engine.limits import EngineLimits  # noqa: PLC0415 - late
        from opencode_mcp.opencode.managed import ManagedInstances  # noqa: PLC0415

        settings = self._settings
        folder = Path(f"{settings.database}.instances")
        managed = ManagedInstances(
            folder, startup_timeout_s=settings.startup_timeout_seconds, clock=self._clock
        )
        self._instances = Instances(
            self._own_opencode(),
            store=self._store,
            managed=managed,
            request_timeout_s=settings.request_timeout_seconds,
            clock=self._clock,
        )
        return Engine(
            store=self._store,
            instances=self._instances,
            clock=self._clock,
            closing=self._closing,
            limits=EngineLimits(
                capacity=Capacity(
                    sessions=settings.max_sessions, running=settings.max_running_turns
                ),
                cleanup_timeout_s=settings.cleanup_timeout_seconds,
                approval_timeout_s=settings.approval_timeout_seconds,
                default_end_action=settings.end_action,
                session_idle_ttl_s=settings.session_idle_ttl_seconds,
                abort_on_call_cancel=settings.on_call_cancel == "abort",
                on_exit=settings.on_exit,
                response_loop_limit=settings.response_loop_limit,
            ),
            holder=self._presence.name,
            is_dead_holder=self._presence.is_dead,
            carries_on=self._carries_on,
        )

    def _own_opencode(self) -> StartSettings | AttachSettings:
        from opencode_mcp.engine.attaching import AttachSettings  # noqa: PLC0415
        from opencode_mcp.opencode.managed import StartSettings  # noqa: PLC0415

        settings = self._settings
        if settings.server_url is not None and settings.mode is InstanceKind.ATTACH:
            secret = settings.server_password
            return AttachSettings(
                url=settings.server_url,
                username=settings.server_username,
                password=secret.get_secret_value() if secret else None,
            )
        return StartSettings(
            binary=settings.opencode_bin,
            args=settings.serve_args,
            env=child_environment(self._environ, settings),
        )


@asynccontextmanager
async def open_runtime(
    settings: Settings,
    environ: Mapping[str, str],
    closing: Closing | None = None,
    *,
    carries_on: bool = True,
) -> AsyncIterator[Runtime]:
    """Open the program and close it in reverse. `closing` tells it that this comes.

    `carries_on`: whether it takes up what others left unfinished; a command that a person types
    does what it was told and no more. Raises a StoreError when the tracking database cannot be
    used.
    """
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(Store.open(settings.database))
        presence = Presence(Path(f"{settings.database}.processes"))
        stack.enter_context(presence)
        clock = Clock()
        if carries_on:
            await purge(store, settings.tombstone_days, clock)
        engine_stack = await stack.enter_async_context(AsyncExitStack())
        runtime = Runtime(
            settings,
            environ,
            store=store,
            presence=presence,
            stack=engine_stack,
            state_key=await store.shared_key(_STATE_KEY),
            closing=closing or Closing(clock),
            carries_on=carries_on,
        )
        if carries_on:
            _tell_started(settings)
            purging = keep_purging(store, settings.tombstone_days, clock)
            await stack.enter_async_context(in_background(runtime.resume(), purging))
        try:
            yield runtime
        finally:
            runtime.closing.begin(refuse=True)


def _tell_started(settings: Settings) -> None:
    transport, mode = settings.transport, settings.mode.value
    tell(log, Event.SERVER_STARTED, version=__version__, transport=transport, mode=mode)
    if settings.log_content:
        tell(log, Event.CONTENT_IS_LOGGED)

"""Which OpenCode runs a session, and how to reach it (contract §1, Instance).

Execution lives in one process: another OpenCode on the same data says "idle", answers `true` to an
abort and 404 after a delete while the turn runs on. So nothing here ever falls back to "some
OpenCode": a session is reached through its own instance, or through the next one on the same data
after the first one's *proven* death, or not at all.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from opencode_mcp.engine.attaching import AttachSettings
from opencode_mcp.engine.folders import Folders
from opencode_mcp.errors import InstanceUnreachableError, StaleSessionError
from opencode_mcp.log_events import Event, tell
from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.opencode.events import EventHub
from opencode_mcp.opencode.managed import InstanceState, LiveInstance, ManagedInstances
from opencode_mcp.opencode.start_faults import file_faults
from opencode_mcp.opencode_errors import (
    OpencodeError,
    OpencodeUnauthorizedError,
    OpencodeUnavailableError,
)
from opencode_mcp.records import Instance, InstanceKind

if TYPE_CHECKING:
    from opencode_mcp.clock import Clock
    from opencode_mcp.opencode.managed import StartSettings
    from opencode_mcp.records import Session
    from opencode_mcp.store.store import Store

log = logging.getLogger(__name__)


def rebinding(instance: Instance) -> str:
    """Return what an operator can do about an instance that is out of reach for good."""
    return (
        "If that is for good, an operator can move its sessions: opencode-mcp sessions rebind"
        f" {instance.url or instance.id} <new URL, or: managed>."
    )


@dataclass(frozen=True, slots=True)
class Connection:
    """An OpenCode within reach: who it is, its client, its events."""

    instance: Instance
    client: OpencodeClient
    events: EventHub
    #: folders whose providers OpenCode has read, with the stretch of events in which it did
    warmed: dict[str, int] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reached:
    """A session with the connection to its instance.

    `moved` is true when its former instance is proven dead: then nothing of it runs (facts 9.1).
    """

    session: Session
    connection: Connection
    moved: bool


class Instances:
    """Every OpenCode this process talks to. Opened once, closed last."""

    def __init__(
        self,
        own: StartSettings | AttachSettings,
        *,
        store: Store,
        managed: ManagedInstances,
        request_timeout_s: float,
        clock: Clock,
    ) -> None:
        self._own = own
        self._store = store
        self._managed = managed
        self._request_timeout_s = request_timeout_s
        self._clock = clock
        self._open: dict[str, Connection] = {}
        #: what our managed OpenCodes keep of folders
        self.folders = Folders(
            store=store, connections=self._open.values, lock=managed.folders_lock, clock=clock
        )
        #: what our own OpenCode said of itself when we came to it; None: not yet
        self.version: str | None = None
        self._own_id: str | None = None
        self._lock = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open nothing yet: a managed OpenCode starts at the first call that needs it."""
        self._stack.push_async_callback(self._managed.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every connection, then let go of the managed instances."""
        await self._stack.aclose()

    async def own(self) -> Connection:
        """Return the instance that new sessions run in, starting a managed one if need be.

        Raises OpencodeStartError when a managed OpenCode does not come up, OpencodeError when an
        attached one does not answer, or OpencodeUnsupportedError when it is none that we can drive.
        """
        async with self._lock:
            if self._own_id is not None:
                connection = self._open[self._own_id]
                if connection.instance.kind is InstanceKind.ATTACH or not self._managed.is_dead(
                    connection.instance.id
                ):
                    return connection
                tell(log, Event.OPENCODE_DIED, instance_id=connection.instance.id)
                await self._bury(connection.instance)
            connection = await self._connect_own()
            self._own_id = connection.instance.id
            return connection

    async def own_unless_started(self) -> Connection | None:
        """Return our instance where that starts nothing; None: a managed one that is not up.

        Those that starts were left in are buried if they are proven dead. Raises as `own`.
        """
        for instance in await self._store.instances_of_starts():
            if instance.kind is InstanceKind.MANAGED and self._managed.is_dead(instance.id):
                await self._bury(instance)
        is_up = self._own_id is not None or isinstance(self._own, AttachSettings)
        return await self.own() if is_up else None

    async def at_hand(self) -> Connection | None:
        """Return our instance if that starts none and waits for no start. Raises as `own`."""
        if isinstance(self._own, AttachSettings):
            return await self.own()
        up = self._own_id is not None and not self._managed.is_dead(self._own_id)
        return self._open.get(self._own_id or "") if up else None

    async def of(self, session: Session) -> Reached:
        """Return the session with its instance, or with the one that carries its data on.

        Raises InstanceUnreachableError: it lives, or may live, where we cannot reach it.
        """
        found = await self.glance(session)
        if isinstance(found, Connection):
            return Reached(session, found, moved=False)
        own = await self.own() if self._can_carry_on(found) else None
        if own is None or own.instance.data_id != found.data_id:
            msg = (
                f"the OpenCode that ran session {session.id} is gone, and this server does not"
                " serve its data. A managed server with the same HOME goes on with it."
                f" {rebinding(found)}"
            )
            raise InstanceUnreachableError(msg, session_id=session.id)
        return Reached(await self._rehome(session, own), own, moved=True)

    async def _rehome(self, session: Session, own: Connection) -> Session:
        """Write down that the session goes on in our instance, unless somebody just did."""
        try:
            return await self._store.rehome(session, own.instance.id)
        except StaleSessionError:
            current = await self._store.resolve(session.id)
            if current is None or current.instance_id == own.instance.id:
                return current or session
            return await self._store.rehome(current, own.instance.id)

    async def glance(self, session: Session) -> Connection | Instance:
        """Return the connection to the session's instance, or the instance if it is proven dead.

        Starts nothing. Raises InstanceUnreachableError.
        """
        instance = await self._store.instance(session.instance_id)
        if instance is None:
            msg = f"the instance {session.instance_id} of session {session.id} is not on record"
            raise InstanceUnreachableError(msg, session_id=session.id)
        if instance.dead:
            return instance
        if instance.kind is InstanceKind.ATTACH:
            return await self._attached(instance, session.id)
        if self._managed.is_dead(instance.id):
            await self._bury(instance)
            return instance
        async with self._lock:
            return self._open.get(instance.id) or await self._join(instance, session.id)

    def _can_carry_on(self, dead: Instance) -> bool:
        return not isinstance(self._own, AttachSettings) and dead.data_id is not None

    async def _attached(self, instance: Instance, session_id: str) -> Connection:
        """Return the connection to an attached instance: only if it is the one we were given.

        Our password goes to no other address: a row in a database is no leave to send it.
        """
        if isinstance(self._own, AttachSettings) and instance.url == self._own.url:
            return await self.own()
        msg = (
            f"session {session_id} runs in the OpenCode at {instance.url}, and this server is not"
            f" attached to it: only a server with OPENCODE_MCP_SERVER_URL={instance.url} can act"
            f" on it. {rebinding(instance)}"
        )
        raise InstanceUnreachableError(msg, session_id=session_id)

    async def _join(self, instance: Instance, session_id: str) -> Connection:
        """Connect to a managed instance that another process of ours started."""
        live = await self._managed.look(instance.id)
        if not isinstance(live, LiveInstance):
            why = "cannot be seen from here" if live is InstanceState.UNKNOWN else "just ended"
            raise self._beyond_reach(instance, session_id, why)
        client = OpencodeClient(
            live.url,
            username=live.username,
            password=live.password,
            request_timeout_s=self._request_timeout_s,
            clock=self._clock,
        )
        try:
            async with client:
                await client.health()
        except (OpencodeUnavailableError, OpencodeUnauthorizedError) as error:
            # another container's loopback: its address means something else here
            raise self._beyond_reach(instance, session_id, "does not answer here") from error
        return await self._connect(instance, live.url, live.username, live.password)

    @staticmethod
    def _beyond_reach(instance: Instance, session_id: str, why: str) -> InstanceUnreachableError:
        msg = (
            f"session {session_id} runs in the managed OpenCode {instance.id}, which {why}: it may"
            " belong to another container. Ask the server that started it."
            f" {rebinding(instance)}"
        )
        return InstanceUnreachableError(msg, session_id=session_id)

    async def _connect_own(self) -> Connection:
        own = self._own
        if isinstance(own, AttachSettings):
            instance = await self._store.attach_instance(own.url)
            connection = self._open.get(instance.id) or await self._connect(
                instance, own.url, own.username, own.password
            )
            # once, before anything is sent: its routes may mean something else (case 27)
            self.version = version = (await connection.client.health()).version
            tell(
                log, Event.OPENCODE_ATTACHED, instance_id=instance.id, url=own.url, version=version
            )
            return connection
        try:
            with file_faults():
                live = await self._managed.join_or_start(own)
        except OpencodeError as error:
            tell(log, Event.OPENCODE_START_FAILED, error_name=error.name, why=str(error))
            raise
        self.version = live.version
        instance = Instance(
            id=live.id,
            kind=InstanceKind.MANAGED,
            url=None,
            settings_key=live.settings_key,
            data_id=live.data_id,
        )
        await self._store.put_instance(instance)
        return self._open.get(live.id) or await self._connect(
            instance, live.url, live.username, live.password
        )

    async def _connect(
        self, instance: Instance, url: str, username: str, password: str | None
    ) -> Connection:
        client = await self._stack.enter_async_context(
            OpencodeClient(
                url,
                username=username,
                password=password,
                request_timeout_s=self._request_timeout_s,
                clock=self._clock,
            )
        )
        events = await self._stack.enter_async_context(EventHub(client, clock=self._clock))
        connection = Connection(instance, client, events)
        self._open[instance.id] = connection
        return connection

    async def _bury(self, instance: Instance) -> None:
        """Write down a proven death, then remove the files that proved it."""
        tell(log, Event.OPENCODE_GONE, instance_id=instance.id)
        dead = replace(instance, dead=True)
        await self._store.put_instance(dead)
        self._managed.forget(instance.id)
        self._open.pop(instance.id, None)
        if self._own_id == instance.id:
            self._own_id = None

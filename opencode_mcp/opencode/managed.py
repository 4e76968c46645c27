"""OpenCode instances of our own: joined where one lives, started where none does.

One OpenCode serves all processes of ours that share a folder and the same start settings. We hold
a shared lock on `<id>.clients` for each instance that we use; the kernel frees it however we die,
and when nobody holds it any more the instance's supervisor stops it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from opencode_mcp.clock import Clock
from opencode_mcp.log_events import Event, tell
from opencode_mcp.opencode.instance_file import (
    State,
    clients_path,
    read_record,
    record_path,
    start_path,
)
from opencode_mcp.opencode.launcher import launch
from opencode_mcp.opencode.locks import FileLock, is_held_exclusively
from opencode_mcp.opencode.orders import Orders
from opencode_mcp.opencode.reach import answers_here
from opencode_mcp.opencode.start_faults import no_binary, not_started, start_fault
from opencode_mcp.opencode_errors import OpencodeStartError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

log = logging.getLogger(__name__)

#: the last words of an instance that nobody has used
_NEVER_READY = frozenset({State.STARTING, State.FAILED, State.UNSUPPORTED})
#: between two looks at files that another process changes
_POLL_S = 0.03
#: how long a supervisor may take on top of the startup timeout, to end a failure: it needs 2 s
_ENDING_S = 10.0


class InstanceState(StrEnum):
    """What can be said of an instance that we cannot use."""

    DEAD = "dead"  #: proven by its lock: nothing of it runs any more
    UNKNOWN = "unknown"  #: it may be starting, dying, or live where we cannot see it


@dataclass(frozen=True, slots=True)
class StartSettings:
    """What makes two managed instances "the same".

    `binary` is a name or a path; `env` is OpenCode's whole environment but for user and password.
    """

    binary: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)

    def resolved_binary(self) -> str | None:
        """Return the absolute path of the binary, looked for in the PATH of `env`."""
        found = shutil.which(self.binary, path=self.env.get("PATH", os.defpath))
        return None if found is None else str(Path(found).absolute())

    def key(self) -> str:
        """Return 64 hex digits, the same for the same resolved binary, arguments, environment."""
        binary = self.resolved_binary() or self.binary
        content = json.dumps([binary, self.args, sorted(self.env.items())])
        return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class LiveInstance:
    """An OpenCode that we may use: we hold its clients' lock, so it stays until we let go."""

    id: str
    url: str
    username: str
    password: str = field(repr=False)
    data_id: str
    settings_key: str
    version: str


class ManagedInstances:
    """The instances in one folder, as one process of ours uses them. Makes the folder, 0700.

    One per process and folder; its methods may be called by many tasks at once.
    """

    def __init__(
        self,
        folder: Path,
        *,
        startup_timeout_s: float,
        clock: Clock = Clock(),  # noqa: B008 - it has no state
    ) -> None:
        self._folder = folder
        self.folders_lock = folder / "folders.lock"  #: see engine/folders.py
        self._startup_timeout_s = startup_timeout_s
        self._clock = clock
        self._joined: dict[str, FileLock] = {}
        self._one_at_a_time = asyncio.Lock()

    async def join_or_start(self, settings: StartSettings) -> LiveInstance:
        """Return a live instance with these settings, ours until `close()`; start one if need be.

        Raises OpencodeStartError: no such binary, it ended or was not ready in time (the text
        quotes its last lines), or others took too long; and OpencodeUnsupportedError. Takes at most
        about twice the startup timeout: one to wait for others, one to start.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        binary = settings.resolved_binary()
        if binary is None:
            raise no_binary(settings.binary)
        key = settings.key()
        deadline = self._clock.monotonic() + self._startup_timeout_s
        async with self._one_at_a_time, self._starting(key, deadline):
            for instance_id in self._candidates(key):
                joined_before = instance_id in self._joined
                live = await self._join(instance_id, deadline)
                if live is not None and await answers_here(live):
                    _tell_joined(live, joined_before=joined_before)
                    return live
                self._leave(instance_id)
            return await self._start(settings, binary, key)

    async def look(self, instance_id: str) -> LiveInstance | InstanceState:
        """Return what is known of an instance. A live one is ours to use until `close()`.

        DEAD only with proof. One that is starting, dying, or whose file is missing is UNKNOWN.
        """
        joined_before = instance_id in self._joined
        found = self._enter(instance_id)
        if isinstance(found, LiveInstance):
            _tell_joined(found, joined_before=joined_before)
        elif not joined_before:
            self._leave(instance_id)
        return found

    def is_dead(self, instance_id: str) -> bool:
        """Tell whether nothing of it runs any more: its file is there and nobody locks it.

        False proves nothing; a missing or unreadable file neither.
        """
        try:
            return not is_held_exclusively(record_path(self._folder, instance_id))
        except OSError:
            return False

    def forget(self, instance_id: str) -> None:
        """Remove the files of an instance, if it is dead."""
        if self.is_dead(instance_id):
            self._leave(instance_id)
            # the record last: it proves the death, should we be stopped between the two
            clients_path(self._folder, instance_id).unlink(missing_ok=True)
            record_path(self._folder, instance_id).unlink(missing_ok=True)

    async def close(self) -> None:
        """Let go of all instances. One that nobody else uses stops, in its own time."""
        for instance_id in list(self._joined):
            self._leave(instance_id)
            tell(log, Event.OPENCODE_LEFT, instance_id=instance_id)

    @asynccontextmanager
    async def _starting(self, key: str, deadline: float) -> AsyncIterator[None]:
        """Keep all others from starting an instance with these settings."""
        with FileLock(start_path(self._folder, key)) as lock:
            while not lock.try_exclusive():
                if self._clock.monotonic() > deadline:
                    message = (
                        f"another process has been starting OpenCode for more than "
                        f"{self._startup_timeout_s:g} s (it holds {lock.path}); try again"
                    )
                    raise OpencodeStartError(message)
                await self._clock.sleep(_POLL_S)
            yield

    def _candidates(self, key: str) -> Iterator[str]:
        """Yield instances with these settings that may live; remove what failed starts left."""
        for path in sorted(self._folder.glob("*.json")):
            record = read_record(path)
            if record is None or record.settings_key != key:
                continue
            if not self.is_dead(record.id):
                yield record.id
            elif record.state in _NEVER_READY:
                # nobody waits for it: whoever does holds the lock of its settings, which is ours
                self.forget(record.id)

    async def _join(self, instance_id: str, deadline: float) -> LiveInstance | None:
        """Wait until it is ready, and join; None: it died, or does not get done with dying."""
        while self._clock.monotonic() <= deadline:
            found = self._enter(instance_id)
            if found is not InstanceState.UNKNOWN:
                return found if isinstance(found, LiveInstance) else None
            await self._clock.sleep(_POLL_S)
        return None

    def _enter(self, instance_id: str) -> LiveInstance | InstanceState:
        """Take its clients' lock if we can, and keep it unless it is dead."""
        path = record_path(self._folder, instance_id)
        if not self._hold(instance_id):
            return InstanceState.DEAD if self.is_dead(instance_id) else InstanceState.UNKNOWN
        # only now: with our lock in place its supervisor no longer stops it for lack of users,
        # and if it did so before, the record or the lock says it
        record = read_record(path)
        if self.is_dead(instance_id):
            self._leave(instance_id)
            return InstanceState.DEAD
        if record is None or record.state is not State.READY:
            return InstanceState.UNKNOWN
        return LiveInstance(
            id=record.id,
            url=record.url,
            username=record.username,
            password=record.password,
            data_id=record.data_id,
            settings_key=record.settings_key,
            version=record.version,
        )

    def _hold(self, instance_id: str) -> bool:
        if instance_id in self._joined:
            return True
        lock = FileLock(clients_path(self._folder, instance_id))
        try:
            if not lock.try_shared(create=False):
                return False  # its supervisor has it alone: it is on its way out
        except OSError:
            return False
        self._joined[instance_id] = lock
        return True

    def _leave(self, instance_id: str) -> None:
        if (lock := self._joined.pop(instance_id, None)) is not None:
            lock.release()

    async def _start(self, settings: StartSettings, binary: str, key: str) -> LiveInstance:
        instance_id = uuid4().hex
        orders = Orders(
            folder=self._folder.absolute(),
            instance_id=instance_id,
            settings_key=key,
            binary=binary,
            args=settings.args,
            env=settings.env,
            startup_timeout_s=self._startup_timeout_s,
        )
        # ours before it starts, or it would find no user and stop
        lock = FileLock(clients_path(self._folder, instance_id))
        lock.try_shared()
        self._joined[instance_id] = lock
        try:
            await self._launch(orders)
            live = await self._ready(instance_id, binary)
        except BaseException:
            self._leave(instance_id)
            raise
        tell(log, Event.OPENCODE_STARTED, instance_id=live.id, version=live.version)
        return live

    async def _launch(self, orders: Orders) -> None:
        try:
            await asyncio.to_thread(launch, orders)
        except OpencodeStartError:
            # without a record nobody would ever come to remove it; and should there be a
            # supervisor after all, it finds no user and stops
            clients_path(self._folder, orders.instance_id).unlink(missing_ok=True)
            raise

    async def _ready(self, instance_id: str, binary: str) -> LiveInstance:
        """Wait for the supervisor's word."""
        deadline = self._clock.monotonic() + self._startup_timeout_s + _ENDING_S
        while self._clock.monotonic() <= deadline:
            found = self._enter(instance_id)
            if isinstance(found, LiveInstance):
                return found
            if found is InstanceState.DEAD:
                record = read_record(record_path(self._folder, instance_id))
                self.forget(instance_id)
                raise start_fault(binary, record)
            await self._clock.sleep(_POLL_S)
        raise not_started(binary, ("its supervisor does not answer",))


def _tell_joined(live: LiveInstance, *, joined_before: bool) -> None:
    if not joined_before:
        tell(log, Event.OPENCODE_JOINED, instance_id=live.id, version=live.version)

"""The inner of the two supervisor processes: starts OpenCode, watches, and stops it.

It ends when no process of ours uses the instance any more, when OpenCode ends, when it is told to,
or when the outer process (supervisor.py) is gone; and never before everything below it is gone.
One thread only: the parent-death signal of Linux is that of a *thread*.
"""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import socket
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from opencode_mcp.opencode.data_id import data_folder, data_id
from opencode_mcp.opencode.generation import UnsupportedServerError
from opencode_mcp.opencode.instance_file import State, clients_path, write_record
from opencode_mcp.opencode.locks import FileLock
from opencode_mcp.opencode.processes import (
    become_subreaper,
    descendants,
    free_port,
    kill_descendants,
    reap,
)
from opencode_mcp.opencode.server_process import USERNAME, ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from opencode_mcp.opencode.instance_file import InstanceRecord
    from opencode_mcp.opencode.orders import Orders

#: what the outer process writes into our pipe when it is asked to stop
STOP_BYTE = b"s"
#: how often we look whether anybody still uses the instance; everything else wakes us at once
_CLIENTS_EVERY_S = 0.2
#: the same, and how often health is asked, until it is ready
_STARTING_EVERY_S = 0.05
#: ours to choose: between our look for a free port and OpenCode's bind, another may take it
_PORT_TRIES = 5


class _Patience(NamedTuple):
    dispose_s: float  # 97 ms idle (facts 9.5)
    exit_s: float  # 90 ms (facts 9.4)


_ORDERLY = _Patience(dispose_s=3.0, exit_s=2.0)
#: with half of the supervisor gone, be done before the other half is killed as well
_HURRIED = _Patience(dispose_s=1.0, exit_s=0.5)


class _NotStartedError(Exception):
    """OpenCode did not become ready; the text says why."""


class Runner:
    """Runs one instance from start to end.

    `record_fd` is the locked record; reading from `keeper_fd` ends when the outer process dies.
    """

    def __init__(
        self, orders: Orders, record: InstanceRecord, record_fd: int, keeper_fd: int
    ) -> None:
        self._orders = orders
        self._record = record
        self._record_fd = record_fd
        self._clients = FileLock(clients_path(orders.folder, orders.instance_id))
        self._password = secrets.token_urlsafe(32)
        self._server: ServerProcess | None = None
        self._stop: str | None = None
        self._patience = _ORDERLY
        self._selector = selectors.DefaultSelector()
        self._watch(keeper_fd, self._hear_keeper)
        self._watch(self._signals(), self._hear_signal)

    def run(self) -> None:
        """Return when nothing of the instance runs any more."""
        become_subreaper()
        try:
            server, version = self._bring_up()
            ready = replace(
                self._record,
                state=State.READY,
                url=server.url or "",
                username=USERNAME,
                password=self._password,
                data_id=self._data_id(),
                version=version,
            )
        except UnsupportedServerError as fault:
            self._end(State.UNSUPPORTED, str(fault))
            return
        except _NotStartedError as fault:
            self._end(State.FAILED, str(fault))
            return
        self._write(ready)
        while self._stop is None and server.exit_code is None:
            self._look(_CLIENTS_EVERY_S)
        self._write(self._record.ended(State.STOPPING))
        server.dispose(self._patience.dispose_s)
        self._end(State.GONE, self._stop or f"OpenCode ended with exit code {server.exit_code}")

    def _bring_up(self) -> tuple[ServerProcess, str]:
        """Return a ready OpenCode and its version.

        Raises _NotStartedError, UnsupportedServerError.
        """
        deadline = time.monotonic() + self._orders.startup_timeout_s
        tries = 0
        while True:
            server = self._spawn()
            version = self._until_ready(server, deadline)
            if version is not None:
                return server, version
            tries += 1
            if tries == _PORT_TRIES or not server.port_was_taken():
                message = f"it ended with exit code {server.exit_code}"
                raise _NotStartedError(message)
            kill_descendants()  # it has ended; so should all that it started

    def _spawn(self) -> ServerProcess:
        try:
            self._server = server = ServerProcess(self._orders, free_port(), self._password)
        except OSError as error:
            message = f"it cannot be executed: {error.strerror}"
            raise _NotStartedError(message) from error
        self._watch(server.output_fd, partial(self._hear_server, server))
        return server

    def _until_ready(self, server: ServerProcess, deadline: float) -> str | None:
        """Return the version once it listens and is healthy; None: it ended."""
        while server.exit_code is None:
            self._look(_STARTING_EVERY_S)
            if self._stop is not None:
                message = f"it was stopped while it started: {self._stop}"
                raise _NotStartedError(message)
            if server.url is not None and (version := server.version()) is not None:
                return version
            if time.monotonic() > deadline:
                message = f"it was not ready within {self._orders.startup_timeout_s:g} s"
                raise _NotStartedError(message)
        server.read_output()
        return None

    def _data_id(self) -> str:
        try:
            return data_id(data_folder(self._orders.env))
        except (OSError, ValueError) as error:
            message = f"its data folder cannot be told from another: {error}"
            raise _NotStartedError(message) from error

    def _end(self, state: State, why: str) -> None:
        """Stop what still runs, and say how it ended."""
        below = descendants()
        server = self._server
        if server is not None:
            server.terminate()
            deadline = time.monotonic() + self._patience.exit_s
            while server.exit_code is None and (left := deadline - time.monotonic()) > 0:
                self._look(left)
        kill_descendants(below)
        lines = () if server is None else server.last_lines()
        self._write(self._record.ended(state, (why, *lines)))

    def _write(self, record: InstanceRecord) -> None:
        self._record = record
        write_record(self._record_fd, record)

    def _look(self, timeout_s: float) -> None:
        """Wait for something to happen, and take note of it."""
        for key, _ in self._selector.select(timeout_s):
            hear: Callable[[int], None] = key.data
            hear(key.fd)
        for pid, exit_code in (reap() or {}).items():
            if self._server is not None and pid == self._server.pid:
                self._server.ended(exit_code)
        if not self._clients.held and self._nobody_is_left():
            self._stop = self._stop or "nobody used it any more"

    def _nobody_is_left(self) -> bool:
        """Take the clients' lock for good, if nobody holds it: then nobody can join any more."""
        try:
            return self._clients.try_exclusive(create=False)
        except FileNotFoundError:
            return True

    def _watch(self, fd: int, hear: Callable[[int], None]) -> None:
        self._selector.register(fd, selectors.EVENT_READ, hear)

    def _hear_server(self, server: ServerProcess, fd: int) -> None:
        if not server.read_output():
            self._selector.unregister(fd)
            server.close_output()

    def _hear_keeper(self, fd: int) -> None:
        if os.read(fd, 1) == STOP_BYTE:
            self._stop = self._stop or "it was told to stop"
            return
        self._selector.unregister(fd)
        self._patience = _HURRIED
        self._stop = self._stop or "half of its supervisor was killed"

    def _hear_signal(self, fd: int) -> None:
        """Empty the pipe; the handlers have done the rest, and children are reaped anyway."""
        with suppress(BlockingIOError):
            os.read(fd, 4096)

    def _on_term(self, _signal: int, _frame: FrameType | None) -> None:
        self._stop = self._stop or "it was told to stop"

    def _signals(self) -> int:
        """Have signals end a `_look` at once; return what to read then."""
        reader, writer = socket.socketpair()
        reader.settimeout(0)
        writer.settimeout(0)
        signal.signal(signal.SIGTERM, self._on_term)
        # a handler, or there is no wake-up; nothing to do in it
        signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)
        signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
        return reader.detach()

"""What the process table says: the witness that neither OpenCode nor our server can talk to."""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

from tests.support.polling import eventually

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: dispose, SIGTERM, and what is left of its descendants
GONE_WITHIN_S = 20.0

_counter = itertools.count(1)


class Marker:
    """A shell command that sleeps for hours and can be told from every other one on the machine."""

    def __init__(self) -> None:
        self._seconds = f"{40_000 + next(_counter)}.{os.getpid()}"
        self.command = f"sleep {self._seconds}"

    def pids(self) -> list[int]:
        """Return the processes that run this very sleep, shells around it included."""
        return [process.pid for process in _processes() if self._seconds in _command_line(process)]

    async def alive(self) -> bool:
        """Tell whether one runs."""
        return bool(self.pids())

    async def gone(self) -> bool:
        """Tell whether none runs."""
        return not self.pids()

    def kill(self) -> None:
        """Leave nothing behind, however the test went."""
        _kill(psutil.Process(pid) for pid in self.pids() if psutil.pid_exists(pid))


def processes_of_home(home: Path) -> list[psutil.Process]:
    """Return all processes started with this HOME: each sandbox has its own."""
    return [process for process in _processes() if _home(process) == str(home)]


def opencode_servers_of_home(home: Path) -> list[psutil.Process]:
    """Return the OpenCode servers that run with this HOME."""
    return [
        process
        for process in processes_of_home(home)
        if "opencode" in _name(process) and " serve" in _command_line(process)
    ]


def address_of(server: psutil.Process) -> tuple[str, str]:
    """Return URL and password of a running OpenCode server, from the process table alone."""
    password = server.environ()["OPENCODE_SERVER_PASSWORD"]
    listening = [
        connection.laddr.port
        for connection in server.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    return f"http://127.0.0.1:{listening[0]}", password


async def all_gone(home: Path) -> None:
    """Wait until nothing runs with this HOME: no OpenCode, no supervisor, no child."""

    async def check() -> bool:
        return not processes_of_home(home)

    await eventually(check, within_s=GONE_WITHIN_S, what="nothing of ours runs any more")


def kill_home(home: Path) -> None:
    """Kill all that runs with this HOME; a shell child outlives its OpenCode (facts 9.4)."""
    for _ in range(3):  # what was just being born shows in the next round
        _kill(processes_of_home(home))


def _kill(processes: Iterable[psutil.Process]) -> None:
    doomed = list(processes)
    for process in doomed:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(doomed, timeout=5)


def _processes() -> Iterable[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess):
            if process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return ""


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""


def _home(process: psutil.Process) -> str:
    try:
        return process.environ().get("HOME", "")
    except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
        return ""

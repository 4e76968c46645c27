"""Containers of the built images: namespaces, a read-only root and a user without capabilities.

What `docker run` and `docker exec` do, by the kernel's own means (`run_container`). All of them,
and the tests, live in one process namespace of `scripts/test_image.sh`, with one loopback.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.polling import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from tests_image.support.image import Image

_RUN = Path(__file__).with_name("run_container")
#: what `docker stop` and a client that ends must achieve
GONE_WITHIN_S = 15.0


@dataclass(frozen=True, slots=True)
class Container:
    """What stands in a `docker run`."""

    image: Image
    #: None: the image's own, without its command line
    command: Sequence[str] = ()
    entrypoint: Sequence[str] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    #: as in run_container: `bind:HOST:INSIDE`, `bind-ro:HOST:INSIDE`, `tmpfs:OPTIONS:INSIDE`
    mounts: Sequence[str] = ()
    read_only: bool = True
    network: str = "host"

    def argv(self) -> list[str]:
        """Return the command that runs it, in the foreground."""
        config = self.image.config
        entrypoint = config["Entrypoint"] if self.entrypoint is None else self.entrypoint
        return [
            str(_RUN),
            str(self.image.root),
            "ro" if self.read_only else "rw",
            _with_group(self.user or config["User"]),
            config["WorkingDir"],
            self.network,
            *self.mounts,
            "--",
            *(f"{name}={value}" for name, value in self._environment().items()),
            "--",
            *entrypoint,
            *self.command,
        ]

    def _environment(self) -> dict[str, str]:
        return {**self.image.environment, **self.env}

    def exec_argv(self, pid: int, command: Sequence[str]) -> list[str]:
        """Return the command that runs another one beside process 1, which is `pid` here."""
        uid, _, gid = _with_group(self.user or self.image.config["User"]).partition(":")
        pairs = [f"{name}={value}" for name, value in self._environment().items()]
        return [
            *("nsenter", f"--target={pid}", "--mount", "--pid", "--uts", "--ipc", "--net"),
            *("--root", "--wd", "--", "/usr/bin/env", "--ignore-environment", *pairs),
            *("/usr/bin/setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"),
            *("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--", *command),
        ]


def _with_group(user: str) -> str:
    """As Docker: a user without a group, and without an entry in /etc/passwd, is in group 0."""
    return user if ":" in user else f"{user}:0"


@dataclass
class Running:
    """A container that runs in the background."""

    container: Container
    process: asyncio.subprocess.Process
    log: Path
    #: its process 1, as seen from here
    pid: int
    namespace: str

    async def execute(self, *command: str) -> tuple[int, str]:
        """Run a command in it, as `docker exec` does; return its exit code and what it said."""
        process = await asyncio.create_subprocess_exec(
            *self.container.exec_argv(self.pid, command),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await asyncio.wait_for(process.communicate(), 30)
        return process.returncode or 0, said.decode()

    async def health(self) -> tuple[int, str]:
        """Run the image's health check as the engine would."""
        test = self.container.image.config["Healthcheck"]["Test"]
        assert test[0] == "CMD"
        return await self.execute(*test[1:])

    async def stop(self) -> int:
        """Ask its process 1 to end, as `docker stop` does; return the exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), GONE_WITHIN_S)

    def said(self) -> str:
        """What it wrote to stderr so far."""
        return self.log.read_text(encoding="utf-8")


@asynccontextmanager
async def running(container: Container, log: Path) -> AsyncIterator[Running]:
    """Run it without a client (as `docker run -d`); it is killed at the end if it still runs."""
    before = namespaces()
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *container.argv(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        pid, namespace = await _process_1(process, before, log)
        yield Running(container, process, log, pid, namespace)
    except BaseException as error:
        error.add_note(f"{log}:\n{log.read_text(encoding='utf-8')[-3000:]}")
        raise
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await gone(namespaces() - before)


async def _process_1(
    process: asyncio.subprocess.Process, before: set[str], log: Path
) -> tuple[int, str]:
    async def check() -> tuple[int, str] | None:
        assert process.returncode is None, log.read_text(encoding="utf-8")
        for namespace in namespaces() - before:
            pid = process_1(namespace)
            # still the script that makes the container, until it becomes its command
            if pid is not None and str(_RUN) not in _words(pid):
                return pid, namespace
        return None

    found = await eventually(check, what="the container runs")
    assert found is not None
    return found


async def run_to_end(
    container: Container, *, within_s: float = 30, stdin: bytes | None = None
) -> tuple[int, str, str]:
    """Run it and wait; return exit code, stdout and stderr. `stdin` None: it has none."""
    process = await asyncio.create_subprocess_exec(
        *container.argv(),
        stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin), within_s)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return process.returncode or 0, out.decode(), err.decode()


def namespaces() -> set[str]:
    """Return the process namespaces of all containers that live: of all that are not ours."""
    ours = Path("/proc/self/ns/pid").readlink().name
    return {name for _, name in _processes() if name != ours}


def process_1(namespace: str) -> int | None:
    """Return the pid that a namespace's process 1 has here."""
    for pid, name in _processes():
        if name == namespace:
            with suppress(OSError):
                status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
                nested = next(line for line in status.splitlines() if line.startswith("NSpid:"))
                if nested.split()[-1] == "1":
                    return pid
    return None


def states(namespace: str) -> list[str]:
    """Return the state of each process in a container (`R`, `S`, `Z`, …)."""
    found = []
    for pid, name in _processes():
        if name == namespace:
            with suppress(OSError):
                stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
                found.append(stat.rpartition(")")[2].split()[0])
    return found


async def gone(gone_ones: set[str], *, within_s: float = GONE_WITHIN_S) -> None:
    """Wait until nothing of these containers is left."""

    async def check() -> bool:
        return not gone_ones & namespaces()

    await eventually(check, within_s=within_s, what="the container is gone")


def _processes() -> list[tuple[int, str]]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):  # it just ended
                found.append((int(entry.name), (entry / "ns" / "pid").readlink().name))
    return found


def _words(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    return []

"""What the tests of managed instances share: a home, a folder, and a look at the process table.

Run as a program it is a client that joins (or starts) an instance, says its id, and stays until
its stdin ends or it is killed: `python -m tests.opencode.managed_support FOLDER HOME`.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import itertools
import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psutil

from opencode_mcp.cli.scripted_model import opencode_config
from opencode_mcp.opencode.managed import LiveInstance, ManagedInstances, StartSettings

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).parents[2]
#: a loaded machine takes many times what an idle one does
PATIENCE_S = 40.0
_naps = itertools.count(1)


def opencode_binary() -> str:
    """Return the real OpenCode; without one the tests fail, they are never skipped."""
    cached = REPOSITORY / ".cache" / "opencode" / "node_modules" / ".bin" / "opencode"
    binary = os.environ.get("OPENCODE_MCP_TEST_OPENCODE") or str(cached)
    if not os.access(binary, os.X_OK):
        message = f"no OpenCode at {binary}: set OPENCODE_MCP_TEST_OPENCODE"
        raise FileNotFoundError(message)
    return str(Path(binary).absolute())


def make_home(path: Path) -> Path:
    """Make a home for OpenCode, with a model that nobody will ask."""
    config = path / ".config" / "opencode"
    config.mkdir(parents=True)
    model_url = "http://127.0.0.1:9/v1"  # port 9 discards
    (config / "opencode.json").write_text(json.dumps(opencode_config(model_url)), encoding="utf-8")
    return path


def settings(home: Path, *, binary: str | None = None, **env: str) -> StartSettings:
    """Return settings with which OpenCode lives in `home` and asks nobody for anything."""
    quiet = ("AUTOUPDATE", "SHARE", "LSP_DOWNLOAD", "MODELS_FETCH", "DEFAULT_PLUGINS")
    return StartSettings(
        binary=binary or opencode_binary(),
        args=(),
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            **{f"OPENCODE_DISABLE_{name}": "1" for name in quiet},
            **env,
        },
    )


async def eventually(true: Callable[[], bool], what: str) -> None:
    """Wait for the process table or a file to say so."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not true():
                await asyncio.sleep(0.005)
    except TimeoutError:
        message = f"{what}: not within {PATIENCE_S:g} s"
        raise AssertionError(message) from None


def lives(process: psutil.Process) -> bool:
    """Tell whether it still runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def supervisors(folder: Path) -> list[psutil.Process]:
    """Return keepers and runners (and launchers, for a moment) of instances in `folder`."""
    return [
        process
        for process in psutil.process_iter()
        if "opencode_mcp.opencode.supervisor" in _words(process) and _cwd(process) == str(folder)
    ]


@dataclass(frozen=True)
class Tree:
    """The processes of one instance."""

    keeper: psutil.Process
    runner: psutil.Process
    opencode: psutil.Process

    @classmethod
    def of(cls, instance: LiveInstance, folder: Path) -> Tree:
        """Find them in the process table."""
        both = [it for it in supervisors(folder) if instance.id in _words(it)]
        [runner] = [it for it in both if it.ppid() in {other.pid for other in both}]
        [keeper] = [it for it in both if it.pid == runner.ppid()]
        [opencode] = runner.children()
        return cls(keeper, runner, opencode)

    def all(self) -> list[psutil.Process]:
        """Return these, and all below them."""
        return [self.keeper, *self.keeper.children(recursive=True)]


class Naps:
    """Two sleeps below OpenCode, one of them in a session of its own (out of reach of an abort)."""

    def __init__(self) -> None:
        self._plain = f"{50_000 + next(_naps)}.{os.getpid()}"
        self._escaped = f"{60_000 + next(_naps)}.{os.getpid()}"
        self._connection: http.client.HTTPConnection | None = None

    async def begin(self, instance: LiveInstance, directory: Path) -> None:
        """Have OpenCode run them, as its shell command does, and see both."""
        command = f"sleep {self._plain} & setsid sleep {self._escaped} & wait"
        await asyncio.to_thread(self._shell, instance, directory, command)
        await eventually(lambda: len(self.running()) == 2, "both sleeps run")

    def running(self) -> list[psutil.Process]:
        """Return those that run."""
        ours = (["sleep", self._plain], ["sleep", self._escaped])
        return [it for it in psutil.process_iter() if _words(it) in ours and lives(it)]

    def end(self) -> None:
        """Leave nothing behind, however the test went."""
        if self._connection is not None:
            self._connection.close()
        for process in self.running():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _shell(self, instance: LiveInstance, directory: Path, command: str) -> None:
        session = request(instance, "POST", f"/session?directory={directory}", {})
        path = f"/session/{session['id']}/shell?directory={directory}"
        self._connection = _send(instance, "POST", path, {"agent": "build", "command": command})


def request(
    instance: LiveInstance, method: str, path: str, body: dict[str, str] | None = None
) -> dict[str, object]:
    """Ask the instance something and return its answer."""
    connection = _send(instance, method, path, body)
    try:
        response = connection.getresponse()
        content = response.read()
    finally:
        connection.close()
    assert response.status == 200, (response.status, content)
    answer: dict[str, object] = json.loads(content)
    return answer


def _send(
    instance: LiveInstance, method: str, path: str, body: dict[str, str] | None
) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(urlsplit(instance.url).netloc, timeout=PATIENCE_S)
    credentials = base64.b64encode(f"{instance.username}:{instance.password}".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body)
    connection.request(method, path, body=content, headers=headers)
    return connection


class World:
    """One folder of instances, and all that a test starts in it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.home = home
        self.naps = Naps()
        self._managers: list[ManagedInstances] = []
        self._clients: list[asyncio.subprocess.Process] = []
        self._seen: set[psutil.Process] = set()

    def manager(self, startup_timeout_s: float = PATIENCE_S) -> ManagedInstances:
        """Return what one process of ours would have."""
        manager = ManagedInstances(self.folder, startup_timeout_s=startup_timeout_s)
        self._managers.append(manager)
        return manager

    async def client(self) -> tuple[asyncio.subprocess.Process, str]:
        """Start another process that joins, and return it with the id of the instance it got."""
        client = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.opencode.managed_support"),
            *(str(self.folder), str(self.home)),
            cwd=REPOSITORY,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self._clients.append(client)
        assert client.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            return client, (await client.stdout.readline()).decode().strip()

    def tree(self, instance: LiveInstance) -> Tree:
        """Return its processes, which will not outlive the test."""
        tree = Tree.of(instance, self.folder)
        self._seen.update(tree.all())
        return tree

    def nothing_runs(self) -> bool:
        """Tell whether no supervisor, no OpenCode and no sleep of this test runs."""
        return not (supervisors(self.folder) or self.naps.running() or self._at_home())

    async def close(self) -> None:
        """End everything, by force if need be; say so if it was needed."""
        for client in self._clients:
            with suppress(ProcessLookupError):
                client.kill()
            await client.wait()
        for manager in self._managers:
            await manager.close()
        try:
            await eventually(self.nothing_runs, "all of the test's processes are gone")
        finally:
            for process in (*supervisors(self.folder), *self._seen, *self._at_home()):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self.naps.end()

    def _at_home(self) -> list[psutil.Process]:
        return [it for it in psutil.process_iter() if _home(it) == str(self.home) and lives(it)]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _cwd(process: psutil.Process) -> str:
    try:
        return process.cwd()
    except psutil.Error:
        return ""


def _home(process: psutil.Process) -> str:
    try:
        return process.environ().get("HOME", "")
    except (psutil.Error, OSError):
        return ""


async def _be_a_client(folder: str, home: str) -> None:
    manager = ManagedInstances(Path(folder), startup_timeout_s=PATIENCE_S)
    instance = await manager.join_or_start(settings(Path(home)))
    sys.stdout.write(f"{instance.id}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_be_a_client(*sys.argv[1:]))

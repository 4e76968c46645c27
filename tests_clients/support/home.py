"""A client's own home: its settings and ours are files in it, and nothing of the developer's."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from tests.real.support.processes import kill_home, processes_of_home
from tests.real.support.sandbox import REPOSITORY, opencode_binary
from tests.support.bridges import bare_env
from tests.support.polling import eventually
from tests.support.process_bridge import COMMAND
from tests.support.recipes import RECIPES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.real.support.opencode_server import OpencodeServer

CLIENTS = REPOSITORY / ".cache" / "clients" / "node_modules"
#: one run of a client, on a machine ten times slower than a free one
_RUN_S = 240.0
#: our server goes within 9 s of its client (contract §4, ON_EXIT), and its OpenCode after it
_GONE_S = 45.0


class Run(NamedTuple):
    """What became of a program."""

    code: int
    out: str
    err: str


class ClientHome:
    """HOME of one client, with the folder that it works in."""

    def __init__(self, path: Path, project: Path) -> None:
        self.path = path
        self.project = project
        self._settings: dict[str, str | int | bool] = {}
        (path / "tmp").mkdir(parents=True)

    def env(self, **more: str) -> dict[str, str]:
        """Return the complete environment of a process that lives here."""
        programs = (CLIENTS / ".bin", COMMAND.parent, opencode_binary().parent)
        path = os.pathsep.join([*map(str, programs), "/usr/local/bin", "/usr/bin", "/bin"])
        return bare_env(self.path) | {"PATH": path, "TMPDIR": str(self.path / "tmp")} | more

    def write(self, name: str, text: str) -> Path:
        """Write a file of this home."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def attach(self, opencode: OpencodeServer) -> None:
        """Let our server, wherever it is started here, use the OpenCode of the tests."""
        password = self.write("password", opencode.password)
        self.set("server_url", opencode.url)
        self.set("server_password_file", str(password))
        self.set("cleanup_timeout_seconds", 60)

    def set(self, name: str, value: str | int | bool) -> None:  # noqa: FBT001 - a setting's value
        """Give our server a setting by the user's own file: so a client's recipe stays as it is."""
        self._settings[name] = value
        lines = (f"{each} = {json.dumps(given)}" for each, given in self._settings.items())
        self.write(".config/opencode-mcp/config.toml", "\n".join(lines))

    @asynccontextmanager
    async def started(
        self, *argv: str, takes_input: bool = False, env: dict[str, str] | None = None
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """Start a program here; it is killed if it still runs at the end."""
        nothing, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=self.env(**env or {}),
            cwd=self.project,
            stdin=pipe if takes_input else nothing,
            stdout=pipe,
            stderr=pipe,
            limit=2**24,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def run(self, *argv: str, **env: str) -> Run:
        """Run a program here to its end."""
        async with asyncio.timeout(_RUN_S), self.started(*argv, env=env) as process:
            out, err = await process.communicate()
        return Run(process.returncode or 0, out.decode(), err.decode())

    async def left_alone(self) -> None:
        """Wait until nothing that was started here runs any more; fail if something stays."""

        async def check() -> bool:
            return not processes_of_home(self.path)

        try:
            await eventually(check, within_s=_GONE_S, what=f"all that ran in {self.path} is gone")
        finally:
            kill_home(self.path)


def recipe(name: str) -> Path:
    """Return a file of examples/clients."""
    return RECIPES / name

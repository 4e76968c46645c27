"""How a test starts our server, one or several on a database."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Protocol

from tests.support.bridge import open_bridge
from tests.support.http_bridge import open_http, run_http
from tests.support.process_bridge import run_bridge

if TYPE_CHECKING:
    from contextlib import AsyncExitStack
    from pathlib import Path

    from fastmcp.client.elicitation import ElicitationHandler

    from tests.support.bridge import Bridge, Era
    from tests.support.http_bridge import HttpProcess, HttpServer
    from tests.support.process_bridge import ProcessBridge


class Attachable(Protocol):
    """An OpenCode, real or not, that a server of ours can be attached to."""

    @property
    def url(self) -> str:
        """Where it listens."""

    @property
    def password(self) -> str:
        """What it wants to hear."""


class Bridges:
    """Starts our server in the ways that a test needs; all are closed when the test is over.

    In this process, unless the test is about what a process does: `…_process`.
    """

    def __init__(
        self, stack: AsyncExitStack, folder: Path, opencode: Attachable, grounds: Path
    ) -> None:
        self._stack = stack
        self._folder = folder
        self._opencode = opencode
        self._grounds = grounds
        self._count = 0
        #: the tracking database that they share unless told otherwise
        self.database = folder / "tracking.db"

    def attach_env(self, **settings: str) -> dict[str, str]:
        """Return the environment of one that is attached. A setting's name has no prefix."""
        env = bare_env(self._folder / "bridge-home")
        return env | self.settings(
            {"SERVER_URL": self._opencode.url, "SERVER_PASSWORD": self._opencode.password},
            settings,
        )

    async def attached(
        self, *, mode: Era = "legacy", person: ElicitationHandler | None = None, **settings: str
    ) -> Bridge:
        """Open one that is attached, in this process."""
        return await self.open(self.attach_env(**settings), mode=mode, person=person)

    async def attached_process(
        self, *, mode: Era = "legacy", person: ElicitationHandler | None = None, **settings: str
    ) -> ProcessBridge:
        """Start one that is attached, as a process of its own."""
        return await self.run(self.attach_env(**settings), mode=mode, person=person)

    async def open(
        self,
        env: dict[str, str],
        *,
        mode: Era = "legacy",
        person: ElicitationHandler | None = None,
    ) -> Bridge:
        """Open one with exactly this environment in this process."""
        return await self._stack.enter_async_context(
            open_bridge(env, self._folder, mode=mode, person=person)
        )

    async def run(
        self,
        env: dict[str, str],
        *,
        mode: Era = "legacy",
        person: ElicitationHandler | None = None,
    ) -> ProcessBridge:
        """Start one with exactly this environment as a process of its own."""
        self._count += 1
        return await self._stack.enter_async_context(
            run_bridge(env, self._folder, name=f"bridge-{self._count}", mode=mode, person=person)
        )

    async def http(self, **settings: str) -> HttpServer:
        """Open one that is attached and serves over HTTP, in this process."""
        env = self.attach_env(**settings)
        return await self._stack.enter_async_context(open_http(env, self._folder))

    async def http_process(self, **settings: str) -> HttpProcess:
        """Start one that is attached and serves over HTTP, as a process of its own."""
        self._count += 1
        name, env = f"http-{self._count}", self.attach_env(**settings)
        return await self._stack.enter_async_context(run_http(env, self._folder, name=name))

    async def is_ending(self) -> bool:
        """Whether some end is accepted and not confirmed."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as file:
            found = file.execute("SELECT 1 FROM sessions WHERE phase = 'ending'").fetchone()
        return found is not None

    def settings(self, *groups: dict[str, str]) -> dict[str, str]:
        """Return settings as variables: those of a test, and the later ones of `groups` win."""
        merged = {
            "DATABASE": str(self.database),
            "ALLOWED_ROOTS": f"{self._folder}:{self._grounds}",
            "DEFAULT_CWD": str(self._folder),
            # An end that starts OpenCode first takes its time on a loaded machine.
            "CLEANUP_TIMEOUT_SECONDS": "60",
        }
        for group in groups:
            merged |= group
        return {f"OPENCODE_MCP_{name}": value for name, value in merged.items() if value}


def bare_env(home: Path) -> dict[str, str]:
    """Return an environment that says where home is, and next to nothing else."""
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_STATE_HOME": f"{home}/.local/state",
        "XDG_CACHE_HOME": f"{home}/.cache",
    }

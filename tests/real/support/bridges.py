"""How a test starts our server: attached or managed, one or several on a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tests.real.support.bridge import Bridge, run_bridge
from tests.real.support.processes import address_of, opencode_servers_of_home
from tests.real.support.sandbox import Sandbox, opencode_binary
from tests.real.support.witness import Witness

if TYPE_CHECKING:
    from contextlib import AsyncExitStack
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import ScriptedModel
    from tests.real.support.opencode_server import OpencodeServer


class Bridges:
    """Starts our server in the ways that a test needs; all are closed when the test is over."""

    def __init__(
        self, stack: AsyncExitStack, folder: Path, opencode: OpencodeServer, grounds: Path
    ) -> None:
        self._stack = stack
        self._folder = folder
        self._opencode = opencode
        self._grounds = grounds
        self._count = 0
        #: the tracking database that they share unless told otherwise
        self.database = folder / "tracking.db"

    def attach_env(self, **settings: str) -> dict[str, str]:
        """Return the environment of one that is attached to the worker's OpenCode."""
        env = Sandbox.bare_env(self._folder / "bridge-home")
        return env | self._settings(
            {"SERVER_URL": self._opencode.url, "SERVER_PASSWORD": self._opencode.password},
            settings,
        )

    def managed_env(self, sandbox: Sandbox, **settings: str) -> dict[str, str]:
        """Return the environment of one that starts its own OpenCode."""
        return sandbox.env() | self._settings({"OPENCODE_BIN": str(opencode_binary())}, settings)

    async def attached(
        self, *, mode: Literal["legacy", "auto"] = "legacy", **settings: str
    ) -> Bridge:
        """Start one on the worker's OpenCode. A setting's name goes without the prefix."""
        return await self.run(self.attach_env(**settings), mode=mode)

    async def managed(self, sandbox: Sandbox, **settings: str) -> Bridge:
        """Start one that manages an OpenCode of its own in this home."""
        return await self.run(self.managed_env(sandbox, **settings))

    async def run(
        self, env: dict[str, str], *, mode: Literal["legacy", "auto"] = "legacy"
    ) -> Bridge:
        """Start one with exactly this environment, and keep it until the test is over."""
        return await self._stack.enter_async_context(
            run_bridge(env, self._folder, name=self._next_name(), mode=mode)
        )

    def _next_name(self) -> str:
        self._count += 1
        return f"bridge-{self._count}"

    def _settings(self, *groups: dict[str, str]) -> dict[str, str]:
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


class ManagedWitnesses:
    """Finds managed OpenCodes in the process table and reads them beside us."""

    def __init__(self, stack: AsyncExitStack, model: ScriptedModel) -> None:
        self._stack = stack
        self._model = model

    async def of(self, sandbox: Sandbox, *, number: int = 0) -> Witness:
        """Give a client of the `number`th (oldest first) OpenCode that runs in this home."""
        servers = sorted(opencode_servers_of_home(sandbox.home), key=lambda one: one.create_time())
        url, password = address_of(servers[number])
        return await self._stack.enter_async_context(Witness(url, password, self._model))

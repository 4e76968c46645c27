"""How a test starts our server on a real OpenCode: attached, or with one that it manages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.real.support.processes import address_of, opencode_servers_of_home
from tests.real.support.sandbox import Sandbox, opencode_binary
from tests.real.support.witness import Witness
from tests.support.bridges import Bridges

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from opencode_mcp.cli.scripted_model import ScriptedModel
    from tests.support.bridge import Bridge
    from tests.support.process_bridge import ProcessBridge


class RealBridges(Bridges):
    """Starts our server also in managed mode."""

    def managed_env(self, sandbox: Sandbox, **settings: str) -> dict[str, str]:
        """Return the environment of one that starts its own OpenCode."""
        return sandbox.env() | self.settings({"OPENCODE_BIN": str(opencode_binary())}, settings)

    async def managed(self, sandbox: Sandbox, **settings: str) -> Bridge:
        """Open one that manages an OpenCode in this home, in this process."""
        return await self.open(self.managed_env(sandbox, **settings))

    async def managed_process(self, sandbox: Sandbox, **settings: str) -> ProcessBridge:
        """Start one that manages an OpenCode in this home, as a process of its own."""
        return await self.run(self.managed_env(sandbox, **settings))


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

"""What the tools need from the program around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opencode_mcp.engine.engine import Engine
    from opencode_mcp.settings import Settings


class Service(Protocol):
    """Gives the settings at once and the engine at the first call that needs it."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""

    async def engine(self) -> Engine:
        """Return the engine, building it if this is the first call. Starts no OpenCode."""

    async def default_directory(self) -> str | None:
        """Return the folder for a call without `cwd`; None: OpenCode's own is not known."""

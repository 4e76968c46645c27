"""What the tools need from the program around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opencode_mcp.engine.closing import Closing
    from opencode_mcp.engine.engine import Engine
    from opencode_mcp.settings import Settings


@dataclass(frozen=True, slots=True)
class OwnDirectory:
    """The folder that an OpenCode works in by default, and the home of the user it runs as."""

    path: str
    home: str


class Service(Protocol):
    """Gives the settings at once and the engine at the first call that needs it."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    def state_key(self) -> bytes:
        """The key that seals the state of calls which their clients repeat; 32 bytes.

        All processes on one database have the same, also after a restart.
        """

    @property
    def closing(self) -> Closing:
        """Tells when this process is about to exit."""

    async def engine(self) -> Engine:
        """Return the engine, building it if this is the first call. Starts no OpenCode.

        Raises ShuttingDownError.
        """

    async def own_directory(self) -> OwnDirectory:
        """Return the folder of the OpenCode that we are attached to, asking it once."""

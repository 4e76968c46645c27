"""A real MCP client on a container's stdin and stdout."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from tests.support.bridge import Bridge, shapes_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests_image.support.container import Container


@asynccontextmanager
async def over_stdio(container: Container, log: Path) -> AsyncIterator[Bridge]:
    """Run it as an MCP client does with `docker run -i --rm`; leaving closes its stdin."""
    command, *arguments = container.argv()
    with log.open("a", encoding="utf-8") as errors:
        transport = StdioTransport(command, arguments, keep_alive=False, log_file=errors)
        client: Client[Any] = Client(transport, mode="legacy", init_timeout=60)
        try:
            async with client:
                yield Bridge(client, await shapes_of(client))
        except BaseException as error:
            error.add_note(f"{log}:\n{log.read_text(encoding='utf-8')[-3000:]}")
            raise

"""A person at an MCP client, who answers what they are asked as a test tells them to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from fastmcp.client.elicitation import ElicitResult

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams

    from opencode_mcp.cli.scripted_model import Json


class Person:
    """Answers every form alike; an instance is the handler that a client wants."""

    def __init__(
        self, action: Literal["accept", "decline", "cancel"], content: Json | None = None
    ) -> None:
        self.action = action
        self.content = content
        #: what they were shown
        self.messages: list[str] = []

    async def __call__(
        self, message: str, _type: type[Any] | None, _params: ElicitRequestParams, _context: object
    ) -> ElicitResult[Json]:
        self.messages.append(message)
        return ElicitResult(action=self.action, content=self.content)


class Thinker(Person):
    """Looks at a form and never answers it."""

    def __init__(self) -> None:
        super().__init__("accept")
        self.asked = asyncio.Event()
        self.left_alone = asyncio.Event()

    async def __call__(
        self, message: str, _type: type[Any] | None, _params: ElicitRequestParams, _context: object
    ) -> ElicitResult[Json]:
        self.messages.append(message)
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left_alone.set()
        raise AssertionError

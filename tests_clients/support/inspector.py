"""MCP Inspector's command line: one process a request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from opencode_mcp.cli.scripted_model import Json
    from tests_clients.support.home import ClientHome, Run

Era: TypeAlias = Literal["legacy", "modern"]

#: its exit code where the tool says isError
TOOL_ERROR = 5


@dataclass(frozen=True)
class Inspector:
    """How it reaches our server."""

    home: ClientHome
    era: Era
    #: what to start, or where to call
    target: tuple[str, ...]

    async def request(self, method: str, *more: str) -> Run:
        """Send one request, and return what became of it."""
        options = ("--format", "json", "--connect-timeout", "60000", "--protocol-era", self.era)
        argv = ("mcp-inspector", "--cli", *self.target, "--method", method, *more, *options)
        return await self.home.run(*argv)

    async def tools(self) -> dict[str, Json]:
        """List the tools; `--strict` fails on a schema that some clients cannot read."""
        done = await self.request("tools/list", "--strict")
        assert done.code == 0, f"{done.err[-3000:]}\n{done.out[-1000:]}"
        return {tool["name"]: tool for tool in result(done)["tools"]}

    async def call(self, tool: str, arguments: Json) -> Run:
        """Call a tool."""
        given = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        return await self.request("tools/call", *given)


def over_stdio(home: ClientHome, era: Era) -> Inspector:
    """Let it start our server."""
    return Inspector(home, era, ("opencode-mcp",))


def over_http(home: ClientHome, era: Era, url: str, token: str) -> Inspector:
    """Let it call our server at this address."""
    header = ("--header", f"Authorization: Bearer {token}")
    return Inspector(home, era, ("--server-url", url, "--transport", "http", *header))


def result(done: Run) -> Json:
    """Return the MCP result that it printed."""
    assert done.out, done.err[-3000:]
    found: Json = json.loads(done.out)["result"]
    return found

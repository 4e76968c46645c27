"""A bare one-tool FastMCP server: what spawning us is compared with."""

from __future__ import annotations

from fastmcp import FastMCP

mcp = FastMCP("bare")


@mcp.tool
async def ping() -> str:
    """Answer."""
    return "pong"


if __name__ == "__main__":
    mcp.run(show_banner=False)

"""A server that is talked to line by line: its environment, the first line, how long it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.bridges import bare_env

if TYPE_CHECKING:
    from pathlib import Path

WITHIN_S = 60
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "noise", "version": "1"},
    },
}


def environ(folder: Path, **more: str) -> dict[str, str]:
    """Return that of a server attached to an OpenCode that is not there."""
    return bare_env(folder / "home") | {
        "OPENCODE_MCP_SERVER_URL": "http://127.0.0.1:9",
        "OPENCODE_MCP_DATABASE": str(folder / "tracking.db"),
        **more,
    }

"""The recipes of examples/clients: what a client's file says of our server."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

from tests.real.support.sandbox import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

RECIPES = REPOSITORY / "examples" / "clients"


def server_of(file: Path) -> dict[str, Any]:
    """Return what a recipe says of our server."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".toml":
        found: dict[str, Any] = tomllib.loads(text)["mcp_servers"]
    else:
        read = json.loads(text)
        found = read.get("mcpServers") or read["servers"]
    assert list(found) == ["opencode"]
    server: dict[str, Any] = found["opencode"]
    return server

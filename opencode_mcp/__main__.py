"""`python -m opencode_mcp`, and the `opencode-mcp` command."""

from __future__ import annotations

from opencode_mcp.cli.commands import main

if __name__ == "__main__":
    main()

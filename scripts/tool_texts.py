"""Write what tools/list says into docs/tools.md, where the texts are scored.

usage: python scripts/tool_texts.py        (part of `make fmt`; a test checks that it was run)

It writes what stands between the marks of each tool; the scores below them are a person's.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastmcp import Client

from opencode_mcp.app.runtime import open_runtime
from opencode_mcp.callers.server import build_server
from opencode_mcp.settings import load_settings

if TYPE_CHECKING:
    from mcp_types import Tool

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tools.md"
END = "<!-- /text: written by scripts/tool_texts.py -->"


async def list_tools(**settings: str) -> list[Tool]:
    """Return what a server with these settings, else the defaults, lists; it has no OpenCode."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {
            "HOME": f"{folder}/home",
            "OPENCODE_MCP_DATABASE": f"{folder}/tracking.db",
            "OPENCODE_MCP_DEFAULT_CWD": folder,
            **{f"OPENCODE_MCP_{name}": value for name, value in settings.items()},
        }
        loaded = load_settings(environ, cwd=Path(folder))
        async with (
            open_runtime(loaded, environ) as runtime,
            Client(build_server(runtime)) as client,
        ):
            tools: list[Tool] = await client.list_tools()
            return tools


def begin(tool: str) -> str:
    """Return the mark before a tool's text."""
    return f"<!-- text: {tool} -->"


def section(tool: Tool) -> str:
    """Return what stands between a tool's marks: its text, and a table of its arguments."""
    quoted = ["> " + line if line else ">" for line in (tool.description or "").split("\n")]
    required = tool.input_schema.get("required", [])
    rows = [
        f"| `{name}`{' *' if name in required else ''} | {_allowed(prop)} | {_text(prop)} |"
        for name, prop in tool.input_schema["properties"].items()
    ]
    head = ["| argument (`*` required) | allowed, default | meaning |", "|---|---|---|"]
    return "\n".join([f"**{tool.title}**", "", *quoted, "", *head, *rows])


def with_sections(page: str, tools: list[Tool]) -> str:
    """Return the page with every tool's section brought up to date.

    Raises ValueError for a tool that has no marks there.
    """
    for tool in tools:
        before, mark, rest = page.partition(begin(tool.name))
        _, end, after = rest.partition(END)
        if not mark or not end:
            msg = f"docs/tools.md has no marks for {tool.name}"
            raise ValueError(msg)
        page = "".join([before, mark, "\n", section(tool), "\n", end, after])
    return page


def _allowed(prop: dict[str, Any]) -> str:
    bounds = [
        ("minimum", "≥ {}"),
        ("maximum", "≤ {}"),
        ("minLength", "≥ {} characters"),
        ("maxLength", "≤ {} characters"),
        ("minItems", "≥ {} items"),
        ("maxItems", "≤ {} items"),
    ]
    said = [text.format(prop[key]) for key, text in bounds if key in prop]
    kind = " · ".join(f"`{value}`" for value in prop["enum"]) if "enum" in prop else prop["type"]
    default = [f"default `{json.dumps(prop['default'])}`"] if "default" in prop else []
    return ", ".join([kind, *said, *default])


def _text(prop: dict[str, Any]) -> str:
    return re.sub(r"\s+", " ", prop["description"]).replace("|", "\\|")


def main() -> None:
    """Write what is out of date."""
    page = PAGE.read_text(encoding="utf-8")
    current = with_sections(page, asyncio.run(list_tools(CODEX_TOOLS="true")))
    if current != page:
        PAGE.write_text(current, encoding="utf-8")
        print("written: docs/tools.md")


if __name__ == "__main__":
    main()

"""A bare FastMCP tool over HTTP that always returns the same bytes: what listing is compared with.

usage: python -m bench.bare_http ANSWER.json PORT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import uvicorn
from fastmcp import FastMCP
from fastmcp.tools.base import ToolResult

_ANSWER = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
mcp = FastMCP("bare")


@mcp.tool(name="opencode-status")
def status() -> ToolResult:
    """Answer."""
    return ToolResult(content=_ANSWER["content"], structured_content=_ANSWER)


if __name__ == "__main__":
    app = mcp.http_app(stateless_http=True)
    uvicorn.run(app, port=int(sys.argv[2]), log_config=None, access_log=False)

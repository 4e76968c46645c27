"""The two tools for callers of the Codex MCP server, as rows of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.callers.arguments_codex import CodexArguments, CodexReplyArguments
from opencode_mcp.callers.codex import CodexTools
from opencode_mcp.callers.codex_answers import output_schema, to_codex_result
from opencode_mcp.callers.codex_texts import CODEX, CODEX_REPLY
from opencode_mcp.callers.tool_table import CODEX_NAMES, Row, hints

if TYPE_CHECKING:
    from opencode_mcp.callers.service import Service


def codex_table(service: Service) -> list[Row]:
    """Return `codex` and `codex-reply`."""
    tools = CodexTools(service)
    runs = hints(reads=False, destroys=True, repeats=False)
    start, reply = CODEX_NAMES
    rows = [
        Row(start, "Codex", CODEX, CodexArguments, tools.codex, runs),
        Row(reply, "Codex Reply", CODEX_REPLY, CodexReplyArguments, tools.codex_reply, runs),
    ]
    return [row._replace(output=output_schema, shape=to_codex_result) for row in rows]

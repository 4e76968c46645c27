"""Build the FastMCP server: a tool from each row of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastmcp import FastMCP
from fastmcp.exceptions import NotFoundError
from fastmcp.server.middleware import Middleware
from mcp.server.request_state import RequestStateSecurity

from opencode_mcp import __version__
from opencode_mcp.callers import codex_texts, texts
from opencode_mcp.callers.principals import current_principal
from opencode_mcp.callers.tool import ModelTool, to_tool_result
from opencode_mcp.callers.tool_table import names, properties, rows, words

if TYPE_CHECKING:
    from fastmcp.server.middleware import CallNext, MiddlewareContext
    from fastmcp.tools.base import ToolResult
    from mcp_types import CallToolRequestParams

    from opencode_mcp.callers.service import Service
    from opencode_mcp.settings import Settings


class UnknownTool(Middleware):
    """Gives the one fault that no tool can answer, an unknown name, the contract's shape."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Let the call through, and name the tools that there are if it finds none."""
        from opencode_mcp.callers.answers import error_result  # noqa: PLC0415
        from opencode_mcp.callers.call_report import OTHER, CallReport  # noqa: PLC0415

        try:
            return await call_next(context)
        except NotFoundError:
            there = ", ".join(names(self._settings))
            text = f"there is no tool {context.message.name[:100]!r}; there are: {there}"
            result = error_result("INVALID_ARGUMENT", text)
            owner = current_principal(self._settings).name
            with CallReport(OTHER, owner, context.fastmcp_context) as report:
                report.over(result)
            return to_tool_result(result)


def build_server(service: Service) -> FastMCP:
    """Return the FastMCP server with the tools; it opens and owns nothing."""
    if service.settings.transport == "http":  # elsewhere nobody scrapes: a start without it
        from opencode_mcp.metrics import offer_tools  # noqa: PLC0415

        offer_tools(names(service.settings))
    mcp = FastMCP(
        "opencode-mcp",
        version=__version__,
        instructions=texts.INSTRUCTIONS
        + (codex_texts.INSTRUCTIONS if service.settings.codex_tools else ""),
        middleware=[UnknownTool(service.settings)],
        request_state_security=RequestStateSecurity(
            keys=[service.state_key],
            # an answer that comes after the ask's deadline still reaches its turn
            ttl=2.0 * service.settings.approval_timeout_seconds,
        ),
        mask_error_details=True,
        dereference_schemas=False,  # each shape is said once: callers pay for the listing
    )
    settings = service.settings
    said = words(settings)
    for row in rows(service):
        mcp.add_tool(
            ModelTool(
                name=row.name,
                title=row.title,
                description=row.text.format(**said),
                parameters=row.model.tool_schema(**properties(settings, row.name)),
                output_schema=row.output(),
                annotations=row.hints,
                model=row.model,
                handler=row.handler,
                settings=settings,
                closing=service.closing,
                shape=row.shape,
            )
        )
    return mcp

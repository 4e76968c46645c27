"""Build the FastMCP server: four tools from four models, and one door for every error."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal

from fastmcp import FastMCP
from fastmcp.exceptions import NotFoundError
from fastmcp.server.dependencies import get_context
from fastmcp.server.middleware import Middleware
from fastmcp.tools import Tool
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from mcp.server.request_state import RequestStateSecurity
from mcp_types import InputRequiredResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError

from opencode_mcp import __version__
from opencode_mcp.callers import texts
from opencode_mcp.callers.arguments import (
    ApproveArguments,
    Arguments,
    CancelArguments,
    EndArguments,
    ReplyArguments,
    SessionReference,
    StartArguments,
    StatusArguments,
)
from opencode_mcp.callers.principals import current_principal
from opencode_mcp.callers.progress import Reporter
from opencode_mcp.callers.tools import Tools, properties
from opencode_mcp.callers.wire import output_schema
from opencode_mcp.engine.closing import ANSWERED_BY_S
from opencode_mcp.errors import OpencodeMcpError, ShuttingDownError
from opencode_mcp.log_events import tell_failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fastmcp.server.middleware import CallNext, MiddlewareContext
    from mcp_types import CallToolRequestParams

    from opencode_mcp.callers.call_report import CallReport
    from opencode_mcp.callers.service import Service
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.settings import Settings

    ResendSafety = Literal["not_submitted", "unknown"]
    Handler = Callable[[Any, Reporter], Awaitable[Result | InputRequiredResult]]

log = logging.getLogger(__name__)

NAMES = (
    "opencode",
    "opencode-reply",
    "opencode-status",
    "opencode-cancel",
    "opencode-approve",
    "opencode-end",
)
#: tools whose errors tell whether their prompt may be sent again
SUBMITTING = NAMES[:2]
_RESEND: dict[str, ResendSafety] = {
    "SUBMISSION_UNCONFIRMED": "unknown",
    "INTERNAL": "unknown",
}
_CUT_SHORT = (
    "this server is shutting down and could not finish this call: what came of it, opencode-status"
    " tells after its restart"
)
_ERROR_STATUSES = frozenset({"failed", "timeout"})


class ModelTool(Tool):
    """A tool whose arguments are one strict model (FastMCP facts 1.2)."""

    model: type[Arguments] = Field(exclude=True)
    handler: Any = Field(exclude=True)
    settings: Any = Field(exclude=True)
    closing: Any = Field(exclude=True)

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Answer a call, and tell the log and the metrics of it."""
        from opencode_mcp.callers.call_report import CallReport  # noqa: PLC0415

        context = get_context()
        owner = current_principal(self.settings).name
        with CallReport(self.name, owner, context) as report:
            result = await self._answer(arguments, Reporter(context), report)
            if isinstance(result, InputRequiredResult):
                report.over_for_input()
                return InputRequiredToolResult(result)
            report.over(result)
        return to_tool_result(result)

    async def _answer(
        self, arguments: dict[str, Any], reporter: Reporter, report: CallReport
    ) -> Result | InputRequiredResult:
        """Check the arguments, run the handler, and turn every fault into a result.

        The one door for errors: FastMCP would wrap what leaves here, and hide its text.
        """
        from opencode_mcp.callers.answers import error_result, present_error  # noqa: PLC0415
        from opencode_mcp.callers.wording import advise  # noqa: PLC0415

        result: Result | InputRequiredResult | None
        try:
            checked = self.model.model_validate(arguments)
        except ValidationError as error:
            why = explain(error, self.parameters)
            return error_result("INVALID_ARGUMENT", why)
        report.concerns(named_session(checked))
        # the prompt of a repeated call went out with the first one
        fallback: ResendSafety
        fallback = "not_submitted" if reporter.context.request_state is None else "unknown"
        try:
            self.closing.check_open()
            result = await self.closing.until(self.handler(checked, reporter), ANSWERED_BY_S)
            if result is None:
                fallback = "unknown"
                raise ShuttingDownError(_CUT_SHORT)  # noqa: TRY301 - the one door for errors
        except OpencodeMcpError as error:
            report.refused(error)
            result = present_error(error, advise(error, self.settings))
        except Exception as error:  # noqa: BLE001 - the outermost handler: nothing of it may leak
            tell_failure(log, error, where="a tool call")
            result = present_error(error)
        if isinstance(result, InputRequiredResult):
            return result
        if result["kind"] == "error" and self.name in SUBMITTING:
            result["resendSafety"] = _RESEND.get(result["error"]["name"], fallback)
        return result


def named_session(arguments: Arguments) -> str | None:
    """Return the id that a caller gave, if it was just one."""
    given = arguments.references if isinstance(arguments, SessionReference) else {}
    return next(iter(given.values())) if len(given) == 1 else None


def to_tool_result(result: Result) -> ToolResult:
    """Return a result as MCP carries it: the structured object, and its text as one block."""
    return ToolResult(
        content=[TextContent(type="text", text=result["content"])],
        structured_content=dict(result),
        is_error="error" in result or result["status"] in _ERROR_STATUSES,
    )


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
            text = f"there is no tool {context.message.name[:100]!r}; there are: {', '.join(NAMES)}"
            result = error_result("INVALID_ARGUMENT", text)
            owner = current_principal(self._settings).name
            with CallReport(OTHER, owner, context.fastmcp_context) as report:
                report.over(result)
            return to_tool_result(result)


def explain(error: ValidationError, schema: dict[str, Any]) -> str:
    """Say what is wrong with which argument, without its value: it may be a prompt."""
    faults = []
    for fault in error.errors(include_input=False, include_url=False, include_context=False)[:10]:
        name = ".".join(str(part) for part in fault["loc"])[:100] or "arguments"
        text = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "extra_forbidden":
            text = f"is unknown; allowed are {', '.join(schema['properties'])}"
        faults.append(f"{name}: {text}")
    return "; ".join(faults)


def build_server(service: Service) -> FastMCP:
    """Return the FastMCP server with the tools; it opens and owns nothing."""
    if service.settings.transport == "http":  # elsewhere nobody scrapes: a start without it
        from opencode_mcp.metrics import offer_tools  # noqa: PLC0415

        offer_tools(NAMES)
    mcp = FastMCP(
        "opencode-mcp",
        version=__version__,
        instructions=texts.INSTRUCTIONS,
        middleware=[UnknownTool(service.settings)],
        request_state_security=RequestStateSecurity(
            keys=[service.state_key],
            # an answer that comes after the ask's deadline still reaches its turn
            ttl=2.0 * service.settings.approval_timeout_seconds,
        ),
        mask_error_details=True,
        dereference_schemas=False,  # each shape is said once: callers pay for the listing
    )
    tools = Tools(service)
    settings = service.settings
    words = _words(settings)
    for name, title, text, model, handler, hints in _table(tools):
        schema = model.tool_schema(**properties(settings, name))
        mcp.add_tool(
            ModelTool(
                name=name,
                title=title,
                description=text.format(**words),
                parameters=schema,
                output_schema=output_schema(),
                annotations=hints,
                model=model,
                handler=handler,
                settings=settings,
                closing=service.closing,
            )
        )
    return mcp


def _words(settings: Settings) -> dict[str, object]:
    """Return the settings that the tools' texts name."""
    stops = settings.on_call_cancel == "abort"
    is_http = settings.transport == "http"
    return {
        "cancelling": "Cancelling this call" + (", or closing its stream," if is_http else ""),
        "on_cancel": "stops its turn" if stops else "lets its turn run on",
        "action": settings.end_action.value,
        "ask_s": settings.approval_timeout_seconds,
        "cleanup_s": settings.cleanup_timeout_seconds,
    }


def _hints(*, reads: bool, destroys: bool, repeats: bool) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=reads,
        destructive_hint=destroys,
        idempotent_hint=repeats,
        open_world_hint=True,
    )


def _table(
    tools: Tools,
) -> list[tuple[str, str, str, type[Arguments], Handler, ToolAnnotations]]:
    runs = _hints(reads=False, destroys=True, repeats=False)
    looks = _hints(reads=True, destroys=False, repeats=True)
    ends = _hints(reads=False, destroys=True, repeats=True)
    return [
        (NAMES[0], "Start an OpenCode session", texts.OPENCODE, StartArguments, tools.start, runs),
        (NAMES[1], "Continue a session", texts.REPLY, ReplyArguments, tools.reply, runs),
        (NAMES[2], "Look at sessions", texts.STATUS, StatusArguments, tools.status, looks),
        (NAMES[3], "Stop a turn", texts.CANCEL, CancelArguments, tools.cancel, ends),
        (NAMES[4], "Answer an ask", texts.APPROVE, ApproveArguments, tools.approve, ends),
        (NAMES[5], "End a session", texts.END, EndArguments, tools.end, ends),
    ]

"""A tool whose arguments are one strict model, and the one door for every error."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal

from fastmcp.server.dependencies import get_context
from fastmcp.tools import Tool
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from mcp_types import InputRequiredResult, TextContent
from pydantic import Field, ValidationError

from opencode_mcp.callers.argument_kinds import Arguments
from opencode_mcp.callers.principals import current_principal
from opencode_mcp.callers.progress import Reporter
from opencode_mcp.callers.request_ids import repeatable_call, with_request
from opencode_mcp.callers.sizing import MAX_RESULT_CHARS, fit, serialized_size
from opencode_mcp.engine.closing import ANSWERED_BY_S
from opencode_mcp.errors import OpencodeMcpError, ShuttingDownError
from opencode_mcp.log_events import tell_failure

if TYPE_CHECKING:
    from opencode_mcp.callers.call_report import CallReport
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.requests import RepeatableCall

    ResendSafety = Literal["not_submitted", "unknown"]

log = logging.getLogger(__name__)

#: tools whose errors tell whether their prompt may be sent again
SUBMITTING = ("opencode", "opencode-reply", "codex", "codex-reply")
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
    #: makes of a result, and of the arguments as they came, what the caller gets
    shape: Any = Field(exclude=True)

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
        shaped: ToolResult = self.shape(result, arguments)
        return shaped

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
        owner = current_principal(self.settings).name
        reporter.call = repeatable_call(self.name, checked, owner)
        # the prompt of a repeated call went out with the first one
        fallback: ResendSafety
        fallback = "not_submitted" if reporter.context.request_state is None else "unknown"
        try:
            self.closing.check_open()
            work = reporter.heard(self.handler(checked, reporter))
            result = await self.closing.until(work, ANSWERED_BY_S)
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
        return self._completed(result, fallback, reporter.call)

    def _completed(
        self, result: Result, fallback: ResendSafety, call: RepeatableCall | None
    ) -> Result:
        """Add what only the call knows: whether its prompt may be sent again, its request-id."""
        if result["kind"] == "error" and self.name in SUBMITTING:
            if call is not None and call.replayed:  # the prompt went out with the first call
                fallback = "unknown"
            result["resendSafety"] = _RESEND.get(result["error"]["name"], fallback)
        return with_request(result, call)


def named_session(arguments: Arguments) -> str | None:
    """Return the id that a caller gave, if it was just one."""
    given = arguments.references
    return next(iter(given.values())) if len(given) == 1 else None


def to_tool_result(result: Result, _arguments: object = None) -> ToolResult:
    """Return a result as MCP carries it: the structured object, and its text as one block.

    Each is bounded where it is made; this is the net below them, so that none is ever larger.
    """
    if serialized_size(result) >= MAX_RESULT_CHARS:
        result = fit(result, MAX_RESULT_CHARS)
    return ToolResult(
        content=[TextContent(type="text", text=result["content"])],
        structured_content=dict(result),
        is_error="error" in result or result["status"] in _ERROR_STATUSES,
    )


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

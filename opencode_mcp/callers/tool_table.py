"""Every tool: its name, title, text, arguments, body and hints; and what the settings change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_types import InputRequiredResult, ToolAnnotations

from opencode_mcp.callers import texts, wire
from opencode_mcp.callers.approving import rule_properties
from opencode_mcp.callers.argument_kinds import Arguments
from opencode_mcp.callers.arguments import (
    ApproveArguments,
    CancelArguments,
    EndArguments,
    ReplyArguments,
    StartArguments,
)
from opencode_mcp.callers.arguments_reading import (
    InfoArguments,
    OutputArguments,
    StatusArguments,
)
from opencode_mcp.callers.progress import Reporter
from opencode_mcp.callers.tool import to_tool_result
from opencode_mcp.callers.tools import DEFAULT_CANCEL_WAIT_MS, DEFAULT_PAGE, Tools
from opencode_mcp.callers.wire import Result

if TYPE_CHECKING:
    from fastmcp.tools.base import ToolResult

    from opencode_mcp.callers.service import Service
    from opencode_mcp.settings import Settings

Handler = Callable[[Any, Reporter], Awaitable[Result | InputRequiredResult]]

NAMES = (
    "opencode",
    "opencode-reply",
    "opencode-status",
    "opencode-cancel",
    "opencode-approve",
    "opencode-output",
    "opencode-info",
    "opencode-end",
)
#: offered only with CODEX_TOOLS
CODEX_NAMES = ("codex", "codex-reply")


class Row(NamedTuple):
    """One tool."""

    name: str
    title: str
    text: str
    model: type[Arguments]
    handler: Handler
    hints: ToolAnnotations
    output: Callable[[], dict[str, Any]] = wire.output_schema
    #: from a result, and the arguments as they came
    shape: Callable[[Result, dict[str, Any]], ToolResult] = to_tool_result


def names(settings: Settings) -> tuple[str, ...]:
    """Return the names of the tools that are offered."""
    return NAMES + (CODEX_NAMES if settings.codex_tools else ())


def properties(settings: Settings, tool: str) -> dict[str, dict[str, Any]]:
    """Return what the settings change in a tool's input schema: real limits and defaults."""
    if tool in CODEX_NAMES:
        return {}  # exactly what Codex listed
    wait_s = 0 if tool == "opencode-status" else settings.default_wait_seconds
    return {
        "timeout-seconds": {
            "maximum": settings.max_turn_timeout_seconds,
            "default": settings.turn_timeout_seconds,
        },
        "wait-seconds": {"default": wait_s},
        "wait-ms": {"default": DEFAULT_CANCEL_WAIT_MS},
        "wait-for": {"default": "any"},
        "detail": {"default": "standard"},
        "max-output-chars": {"default": settings.max_output_chars},
        **rule_properties(settings),
        "action": {"default": settings.end_action.value},
        "offset": {"default": 0},
        "limit": {} if tool == "opencode-output" else {"default": DEFAULT_PAGE},
        "section": {"default": "answer" if tool == "opencode-output" else "server"},
        "diff-view": {"default": "stat"},
    }


def words(settings: Settings) -> dict[str, object]:
    """Return the settings that the tools' texts name."""
    stops = settings.on_call_cancel == "abort"
    is_http = settings.transport == "http"
    return {
        # over handshake-era HTTP the message alone reaches nobody (contract §2.1)
        "cancelling": "Closing this call's stream" if is_http else "Cancelling this call",
        "on_cancel": "stops its turn" if stops else "lets its turn run on",
        "action": settings.end_action.value,
        "turn_s": settings.turn_timeout_seconds,
        "ask_s": settings.approval_timeout_seconds,
        "cleanup_s": settings.cleanup_timeout_seconds,
    }


def hints(*, reads: bool, destroys: bool, repeats: bool) -> ToolAnnotations:
    """Return all four hints; every tool's world is open."""
    return ToolAnnotations(
        read_only_hint=reads,
        destructive_hint=destroys,
        idempotent_hint=repeats,
        open_world_hint=True,
    )


def rows(service: Service) -> list[Row]:
    """Return the tools that are offered, in the order in which they are listed."""
    listed = table(Tools(service))
    if service.settings.codex_tools:
        from opencode_mcp.callers.codex_table import codex_table  # noqa: PLC0415 - few want it

        listed.extend(codex_table(service))
    return listed


def table(tools: Tools) -> list[Row]:
    """Return the tools that are always there."""
    runs = hints(reads=False, destroys=True, repeats=False)
    looks = hints(reads=True, destroys=False, repeats=True)
    ends = hints(reads=False, destroys=True, repeats=True)
    start = "Start an OpenCode session"
    return [
        Row(NAMES[0], start, texts.OPENCODE, StartArguments, tools.start, runs),
        Row(NAMES[1], "Continue a session", texts.REPLY, ReplyArguments, tools.reply, runs),
        Row(NAMES[2], "Look at sessions", texts.STATUS, StatusArguments, tools.status, looks),
        Row(NAMES[3], "Stop a turn", texts.CANCEL, CancelArguments, tools.cancel, ends),
        Row(
            NAMES[4],
            "Answer a permission or question",
            texts.APPROVE,
            ApproveArguments,
            tools.approve,
            ends,
        ),
        Row(NAMES[5], "Read an output", texts.OUTPUT, OutputArguments, tools.output, looks),
        Row(
            NAMES[6], "List models, agents and limits", texts.INFO, InfoArguments, tools.info, looks
        ),
        Row(NAMES[7], "End a session", texts.END, EndArguments, tools.end, ends),
    ]

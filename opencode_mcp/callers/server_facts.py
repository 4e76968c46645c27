"""What `opencode-info` says of this server: versions, and the settings that concern a caller.

Named one by one: a new setting is told only when somebody decides so. Left out for good is what
callers need not know: secrets, addresses, programs, files, who else may call.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from opencode_mcp import __version__
from opencode_mcp.callers.argument_kinds import MAX_WAIT_S
from opencode_mcp.callers.sizing import short
from opencode_mcp.records import InstanceKind

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.catalogue import Sign
    from opencode_mcp.settings import Settings

#: by name in `Settings`; told in camelCase
TOLD = (
    "mode",
    "transport",
    "default_model",
    "default_agent",
    "default_sandbox",
    "max_sandbox",
    "default_approval_policy",
    "allowed_approval_policies",
    "default_wait_seconds",
    "on_call_cancel",
    "turn_timeout_seconds",
    "max_turn_timeout_seconds",
    "approval_timeout_seconds",
    "cleanup_timeout_seconds",
    "end_action",
    "on_exit",
    "session_idle_ttl_seconds",
    "tombstone_days",
    "max_sessions",
    "max_running_turns",
    "max_output_chars",
    "response_loop_limit",
)
#: the rest is in section roots
_ROOTS_SHOWN = 10


def present_server(settings: Settings, sign: Sign | None) -> Result:
    """Return the facts about this server; `sign` None: OpenCode was not asked."""
    server: dict[str, str | int] = {"version": __version__}
    if sign is not None and sign.version is not None:
        server["opencodeVersion"] = short(sign.version)
    server |= {
        _camel(name): _plain(getattr(settings, name))
        for name in TOLD
        if getattr(settings, name) is not None
    }
    server["maxWaitSeconds"] = MAX_WAIT_S
    roots = shown_roots(settings)
    result: Result = {
        "kind": "info",
        "status": "ok",
        "content": "",
        "server": server,
        "roots": roots[:_ROOTS_SHOWN],
    }
    if sign is not None:
        result["availability"] = "opencode_unreachable" if sign.fault else "ok"
    if settings.default_cwd is not None:
        result["directory"] = shown_path(str(settings.default_cwd))
    if len(roots) > _ROOTS_SHOWN:
        result["truncated"], result["omittedFields"] = True, ["roots"]
    result["content"] = _text(result, settings, sign)
    return result


def _text(result: Result, settings: Settings, sign: Sign | None) -> str:
    notes = (
        "defaultModel and defaultAgent, where they are not here: OpenCode's own. maxRunningTurns,"
        " sessionIdleTtlSeconds and responseLoopLimit 0: off."
    )
    lines = [
        f"opencode-mcp {__version__}. {_about_opencode(settings, sign)}",
        *(f"{name}: {value}" for name, value in result["server"].items() if name != "version"),
        notes,
        f"Default folder: {result.get('directory', 'the one that OpenCode runs in')}",
    ]
    roots = result["roots"]
    if roots:
        more = len(shown_roots(settings)) - len(roots)
        lines.append("Allowed roots: " + ", ".join(roots) + (f" and {more} more" if more else ""))
    lines.append("Call opencode-info with section models, agents or roots for those.")
    return "\n".join(lines)


def _about_opencode(settings: Settings, sign: Sign | None) -> str:
    if sign is None:
        return "OpenCode: not asked; one is started by the first call that needs it."
    if sign.fault:
        what = "attached" if settings.mode is InstanceKind.ATTACH else "managed"
        return f"OpenCode ({what}): cannot be reached now ({sign.fault})."
    return f"OpenCode: reachable, version {short(sign.version or '')}."


def shown_roots(settings: Settings) -> list[str]:
    """Return the allowed roots as callers see them, each once; none: OpenCode's own folder."""
    return list(dict.fromkeys(shown_path(str(root)) for root in settings.allowed_roots))


def shown_path(path: str) -> str:
    """Return a folder as callers see it: short, and such that JSON can hold it."""
    return short(path.encode("utf-8", "backslashreplace").decode())


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _plain(value: object) -> str | int:
    """Return a setting's value; a list as it is written in a setting."""
    if isinstance(value, tuple):
        return ",".join(str(_plain(item)) for item in value)
    if isinstance(value, Enum):
        return str(value.value)
    return value if isinstance(value, int) else short(str(value))

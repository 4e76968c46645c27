"""Claude Code, headless, asking a scripted model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests_clients.support.home import ClientHome, Run
    from tests_clients.support.scripted_api import ScriptedApi

#: no account, no telemetry, no update
_OFF = {
    "ANTHROPIC_API_KEY": "none",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
#: gives a call up after 10 s: long enough for a loaded machine to begin a turn in
IMPATIENT = {"MCP_TOOL_TIMEOUT": "10000"}
_PREFIX = "mcp__opencode__"


def argv(config: Path) -> list[str]:
    """Return a headless run with the servers of this file, and leave to call our tools."""
    return [
        *("claude", "-p", "Go.", "--output-format", "stream-json", "--verbose"),
        *("--mcp-config", str(config), "--strict-mcp-config"),
        *("--allowedTools", "mcp__opencode"),
    ]


def env(api: ScriptedApi, **more: str) -> dict[str, str]:
    """Return the variables of a run."""
    return {**_OFF, "ANTHROPIC_BASE_URL": api.url, **more}


async def run(home: ClientHome, api: ScriptedApi, config: Path, **more: str) -> Run:
    """Let the model carry out its script; the run must succeed."""
    done = await home.run(*argv(config), **env(api, **more))
    api.check()
    assert done.code == 0, f"{done.err[-3000:]}\n{done.out[-3000:]}"
    return done


def last_words(done: Run) -> str:
    """Return what the run ended with."""
    return str(messages(done)[-1]["result"])


def servers(done: Run) -> dict[str, str]:
    """Return each MCP server's status, as the run's first message has it."""
    return {each["name"]: each["status"] for each in messages(done)[0]["mcp_servers"]}


def messages(done: Run) -> list[Json]:
    """Return the run's messages."""
    return [json.loads(line) for line in done.out.splitlines()]


def ours(api: ScriptedApi) -> dict[str, Json]:
    """Return our tools, as the model has them in its first request."""
    tools = api.requests[0].tools
    return {name.removeprefix(_PREFIX): tools[name] for name in tools if name.startswith(_PREFIX)}

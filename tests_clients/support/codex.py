"""Codex CLI, headless, asking a scripted model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opencode_mcp.cli.scripted_model import Json
    from tests_clients.support.home import ClientHome, Run
    from tests_clients.support.scripted_api import ScriptedApi

#: no account, no telemetry, no update
_CONFIG = """\
model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false

[otel]
exporter = "none"

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0

"""


#: the recipes' own
_LIMIT = "tool_timeout_sec = 630"
ENV = {"SCRIPTED_KEY": "none"}
ARGV = ("codex", "exec", "--skip-git-repo-check", "--json", "Go.")


def impatient(servers: str) -> str:
    """Return a recipe with a limit as somebody would set it who does not know how long turns take.

    10 s: long enough for a loaded machine to begin a turn in.
    """
    assert _LIMIT in servers
    return servers.replace(_LIMIT, "tool_timeout_sec = 10")


def configure(home: ClientHome, api: ScriptedApi, servers: str) -> None:
    """Write its config.toml; `servers` is the part that names our server."""
    home.write(".codex/config.toml", _CONFIG.format(url=api.url) + servers)


async def run(home: ClientHome, api: ScriptedApi, servers: str, **env: str) -> Run:
    """Let the model carry out its script; the run must succeed."""
    configure(home, api, servers)
    done = await home.run(*ARGV, **ENV, **env)
    api.check()
    assert done.code == 0, f"{done.err[-3000:]}\n{done.out[-3000:]}"
    return done


def last_words(done: Run) -> str:
    """Return what the run ended with."""
    texts = [item["text"] for item in items(done) if item["type"] == "agent_message"]
    return str(texts[-1])


def calls(done: Run) -> list[Json]:
    """Return the finished calls of our tools."""
    return [item for item in items(done) if item["type"] == "mcp_tool_call"]


def items(done: Run) -> list[Json]:
    """Return what the run completed."""
    events = [json.loads(line) for line in done.out.splitlines()]
    return [event["item"] for event in events if event["type"] == "item.completed"]

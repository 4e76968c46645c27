"""`opencode-info` on the real OpenCode: its models and agents, folder by folder, and no start."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opencode_mcp.cli.scripted_model import MODELS
from tests.real.support.processes import opencode_servers_of_home, processes_of_home
from tests.real.support.sandbox import write_project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.bridges import RealBridges
    from tests.real.support.sandbox import Sandbox
    from tests.support.bridge import Bridge

_MARK = "marked-secret-0123456789"
#: what a project of its own may set: a provider with a secret, agents of every kind
_OWN: dict[str, Any] = {
    "provider": {
        "own": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Our own",
            "options": {"baseURL": f"https://user:{_MARK}@example.invalid/v1", "apiKey": _MARK},
            "models": {
                "deep/thinker": {
                    "name": "Deep thinker",
                    "limit": {"context": 1000, "output": 50},
                    "reasoning": True,
                    "tool_call": False,
                    "variants": {"slow": {"reasoningEffort": "high"}},
                }
            },
        }
    },
    "agent": {
        "reviewer": {"description": "Reads.", "mode": "primary", "model": "scripted/two"},
        "errand": {"description": "Sub.", "mode": "subagent"},
        "anywhere": {"description": "Both."},
        "secret": {"description": "Not yours.", "hidden": True},
        "build": {"temperature": 0},
        "plan": {"disable": True},
    },
}


async def listed(bridge: Bridge, section: str, folder: Path, **more: str) -> dict[str, Any]:
    """Return the entries of a section by their names, all of them."""
    answer = await bridge.call("opencode-info", section=section, cwd=str(folder), limit=100, **more)
    assert not answer.is_error, answer.text
    assert not answer.structured["hasMore"]
    return {entry.get("id", entry.get("name")): entry for entry in answer.structured[section]}


async def test_the_models_are_those_of_the_real_opencode(bridge: Bridge, project: Path) -> None:
    models = await listed(bridge, "models", project, provider="scripted")
    assert models == {
        f"scripted/{name}": {
            "id": f"scripted/{name}",
            "contextTokens": 10_000_000,
            "outputTokens": 8000,
            "variants": [],
            "toolCalls": True,
        }
        for name in MODELS
    }


async def test_the_agents_are_those_a_caller_may_name(bridge: Bridge, project: Path) -> None:
    agents = await listed(bridge, "agents", project)
    assert set(agents) == {"build", "plan"}
    assert "default agent" in agents["build"]["description"]


async def test_a_folder_with_a_configuration_of_its_own_has_its_own_offers(
    bridges: RealBridges, tmp_path: Path, project: Path
) -> None:
    folder = write_project(tmp_path / "own", _OWN)
    bridge = await bridges.attached()
    models = await listed(bridge, "models", folder)
    agents = await listed(bridge, "agents", folder)

    thinker = models["own/deep/thinker"]
    assert (thinker["contextTokens"], thinker["outputTokens"]) == (1000, 50)
    assert thinker["toolCalls"] is False
    assert "slow" in thinker["variants"]
    assert set(agents) == {"build", "reviewer", "anywhere"}
    assert agents["reviewer"]["model"] == "scripted/two"
    assert _MARK not in json.dumps([models, agents])
    assert "own/deep/thinker" not in await listed(bridge, "models", project)
    assert set(await listed(bridge, "agents", project)) == {"build", "plan"}


async def test_a_managed_opencode_is_started_for_its_models_and_not_for_the_server(
    bridges: RealBridges, sandbox: Sandbox, project: Path
) -> None:
    bridge = await bridges.managed(sandbox)
    before = await bridge.call("opencode-info")
    roots = await bridge.call("opencode-info", section="roots")
    assert "availability" not in before.structured
    assert str(project.parent) in roots.structured["roots"]
    assert processes_of_home(sandbox.home) == []

    assert "scripted/one" in await listed(bridge, "models", project)
    assert len(opencode_servers_of_home(sandbox.home)) == 1
    after = await bridge.call("opencode-info")
    assert after.structured["availability"] == "ok"
    assert after.structured["server"]["opencodeVersion"].startswith("1.")


async def test_a_managed_opencode_that_died_is_not_started_again_for_the_server(
    bridges: RealBridges, sandbox: Sandbox, project: Path
) -> None:
    bridge = await bridges.managed(sandbox)
    await listed(bridge, "agents", project)
    (server,) = opencode_servers_of_home(sandbox.home)
    server.kill()
    server.wait(10)
    answer = await bridge.call("opencode-info")
    assert answer.structured.get("availability") != "ok"
    assert opencode_servers_of_home(sandbox.home) == []

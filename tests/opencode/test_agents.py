"""Agents as OpenCode lists them."""

from __future__ import annotations

import json

from pydantic import TypeAdapter

from opencode_mcp.opencode.models import Agent


def test_an_agent_that_a_configuration_names_is_readable() -> None:
    """Tried on 1.18.33: what `opencode.json` leaves out of an agent is null, even of `build`."""
    listed = [{"name": "build", "hidden": None}, {"name": "title", "hidden": True}, {"name": "x"}]
    agents = TypeAdapter(list[Agent]).validate_json(json.dumps(listed))
    assert [agent.name for agent in agents if not agent.hidden] == ["build", "x"]

"""Prompts that make the scripted model do things (its grammar: opencode_mcp.cli.scripted_model)."""

from __future__ import annotations

import json

#: streams for five minutes, longer than any test; slowly, to leave the machine to others
ENDLESS = "SLOW:600,2"


def tool(name: str, **arguments: object) -> str:
    """Call one of OpenCode's tools."""
    return "TOOL:" + json.dumps({"name": name, "args": arguments})


def bash(command: str) -> str:
    """Run a shell command."""
    return tool("bash", command=command, description="run a command")


def write(path: object, text: str) -> str:
    """Write a file."""
    return tool("write", filePath=str(path), content=text)


def ask_which() -> str:
    """Ask the user a question."""
    options = [{"label": label, "description": label} for label in ("red", "blue")]
    return tool("question", questions=[{"question": "Which?", "header": "Q", "options": options}])


def subagent(prompt: str, agent: str = "general") -> str:
    """Hand a prompt to a sub-agent; it runs in a child session."""
    return tool("task", description="sub", prompt=prompt, subagent_type=agent)

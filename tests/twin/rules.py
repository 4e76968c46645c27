"""What an agent may do: OpenCode's rules, of which the last match wins (facts 5.9)."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.twin.shapes import Json

#: what OpenCode gives every agent of its own
_DEFAULT: tuple[Json, ...] = (
    {"permission": "*", "pattern": "*", "action": "allow"},
    {"permission": "external_directory", "pattern": "*", "action": "ask"},
)


def rules_of(session: Json) -> list[Json]:
    """Return the rules in force for a session: defaults, its folder's settings, its own."""
    settings = Path(session["directory"], "opencode.json")
    given = json.loads(settings.read_text("utf-8")) if settings.exists() else {}
    configured = [
        {"permission": permission, "pattern": pattern, "action": action}
        for permission, said in given.get("permission", {}).items()
        for pattern, action in (said.items() if isinstance(said, dict) else [("*", said)])
    ]
    return [*_DEFAULT, *configured, *session.get("permission", [])]


def verdict(rules: Iterable[Json], permission: str, pattern: str) -> str:
    """Return `allow`, `ask` or `deny`."""
    action = "ask"
    for rule in rules:
        if _matches(rule["permission"], permission) and _matches(rule["pattern"], pattern):
            action = rule["action"]
    return action


def is_off(rules: Iterable[Json], permission: str) -> bool:
    """Whether a tool is not even offered: the last rule that names it denies everything."""
    named = [rule for rule in rules if _matches(rule["permission"], permission)]
    return bool(named) and (named[-1]["pattern"], named[-1]["action"]) == ("*", "deny")


def relevant(rules: Iterable[Json], permission: str) -> list[Json]:
    """Return the rules that a denied model is shown."""
    return [rule for rule in rules if _matches(rule["permission"], permission)]


@functools.cache
def _expression(pattern: str) -> re.Pattern[str]:
    text = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    if text.endswith(r"\ .*"):  # "git *" is meant for a bare "git" too
        text = text.removesuffix(r"\ .*") + r"(\ .*)?"
    return re.compile(text, re.DOTALL)


def _matches(pattern: str, value: str) -> bool:
    return _expression(pattern).fullmatch(value) is not None

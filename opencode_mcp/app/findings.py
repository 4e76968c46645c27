"""What a check found: the lines of `opencode-mcp doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"  # it works, and somebody should know
    PROBLEM = "problem"  # a server would not start, or its calls would fail
    SKIPPED = "skipped"  # could not be looked at, because of another problem


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. No text of it holds a secret."""

    check: str
    level: Level
    text: str
    #: what to do about it; "" where there is nothing to do
    remedy: str = ""


def ok(check: str, text: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(check, Level.OK, text)


def warning(check: str, text: str, remedy: str) -> Finding:
    """Return a finding that somebody should know of."""
    return Finding(check, Level.WARNING, text, remedy)


def problem(check: str, text: str, remedy: str) -> Finding:
    """Return a finding that stands in the way."""
    return Finding(check, Level.PROBLEM, text, remedy)


def skipped(check: str, text: str) -> Finding:
    """Return a finding that nothing was found out."""
    return Finding(check, Level.SKIPPED, text)

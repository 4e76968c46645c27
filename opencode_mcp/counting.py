"""Numbers of things as people write them."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """Return "1 session", "2 sessions"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def happened(number: int, what: str, how: str) -> str:
    """Return "2 questions rejected", and nothing for none."""
    return f"{counted(number, what)} {how}" if number else ""

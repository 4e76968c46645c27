"""What agents of the real suite ask leave for, and what a result says when they did not get it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.real.support.scripts import bash

if TYPE_CHECKING:
    from tests.support.bridge import Answer

HELLO = bash("echo hello")


def warned(answer: Answer) -> list[str]:
    """Return what a result says of rejected asks."""
    warnings = answer.structured.get("warnings", [])
    return [one["message"] for one in warnings if one["code"] == "APPROVAL_REJECTED"]

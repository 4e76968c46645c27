"""Moments as callers see them."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def iso(moment: datetime) -> str:
    """Return a moment as callers see it: ISO 8601, UTC, milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

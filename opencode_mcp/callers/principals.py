"""Who makes the call under way (contract §1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastmcp.server.dependencies import get_access_token

from opencode_mcp.records import ANONYMOUS, LOCAL, Principal

if TYPE_CHECKING:
    from opencode_mcp.settings import Settings


def current_principal(settings: Settings) -> Principal:
    """Return who makes the call under way, as its transport proved it."""
    name = LOCAL
    if settings.transport == "http":
        token = get_access_token()
        name = f"token:{token.client_id}" if token else ANONYMOUS
    return Principal(name, sees_all=name in settings.admins)

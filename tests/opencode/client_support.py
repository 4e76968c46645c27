"""What the tests of the routes share: a session, a refusal, and how a test uses the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.opencode.fake_server import says

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from opencode_mcp.opencode.client import OpencodeClient

    Use = Callable[[OpencodeClient], Awaitable[object]]

SESSION: dict[str, Any] = {
    "id": "ses_1",
    "slug": "hidden-mountain",
    "projectID": "global",
    "directory": "/p",
    "path": "p",
    "cost": 0,
    "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    "title": "t",
    "version": "1.18.33",
    "metadata": {"a": "tok"},
    "time": {"created": 1795961764655, "updated": 1795961764655},
}
NOT_FOUND = says({"name": "NotFoundError", "data": {"message": "Session not found: ses_1"}}, 404)

"""Asks as OpenCode 1.18.33 lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.opencode.models import PermissionRequest, QuestionRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOOL = {"messageID": "msg_1", "callID": "call_1"}


def permission(ask_id: str = "per_1", session_id: str = "ses_1") -> PermissionRequest:
    """Make a permission that waits."""
    return PermissionRequest.model_validate(
        {
            "id": ask_id,
            "sessionID": session_id,
            "permission": "bash",
            "patterns": ["ls"],
            "metadata": {"command": "ls"},
            "always": ["ls *"],
            "tool": _TOOL,
        }
    )


def question(*items: Mapping[str, object], ask_id: str = "que_1") -> QuestionRequest:
    """Make a question that waits; its items offer red and blue unless they say otherwise."""
    options = [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]
    base: dict[str, object] = {"question": "Which?", "header": "Q", "options": options}
    return QuestionRequest.model_validate(
        {
            "id": ask_id,
            "sessionID": "ses_1",
            "questions": [{**base, **item} for item in items or ({},)],
            "tool": _TOOL,
        }
    )

"""The `pendingApprovals` of a result: what waits for an answer, as far as there is room.

An ask's id is never cut: one that does not fit is left out, and `pendingApprovalCount` tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opencode_mcp.callers.moments import iso
from opencode_mcp.callers.sizing import APPROVALS, NAME_CHARS, fitting, serialized_size, short
from opencode_mcp.opencode.models import PermissionRequest, QuestionRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opencode_mcp.callers.wire_parts import Approval, Option, Question
    from opencode_mcp.engine.answers import Ask
    from opencode_mcp.engine.outcome import AskTimes, Verdict


class _Size(NamedTuple):
    """How much of each ask is told."""

    #: patterns, questions, and options of a question
    items: int
    #: of a permission's name, a pattern, a question; 0: none of it
    text: int
    #: of an option's description; 0: none of it. Labels are answers, and stay as they are
    description: int


#: tried in this order until all fits
_SIZES = (
    _Size(APPROVALS, NAME_CHARS, NAME_CHARS),
    _Size(APPROVALS, 150, 80),
    _Size(4, 80, 0),
    _Size(0, 80, 0),
)


def pending_approvals(verdict: Verdict, limit: int) -> tuple[list[Approval], bool]:
    """Return what waits in at most `limit` serialized characters, and whether that is all of it."""
    asks = verdict.pending[:APPROVALS]
    listed: list[Approval] = []
    for size in _SIZES:
        # one by one, so that what has no room anyway is not made
        listed = fitting((_approval(ask, verdict.ask_times, size) for ask in asks), limit, _in_list)
        if len(listed) == len(asks):
            is_all = size is _SIZES[0] and not any(map(_has_more, asks))
            return listed, is_all and len(asks) == len(verdict.pending)
    return listed, False


def _in_list(approval: Approval) -> int:
    return serialized_size(approval) + len(" ")


def _has_more(ask: Ask) -> bool:
    if isinstance(ask, PermissionRequest):
        return len(ask.patterns) > APPROVALS
    return max([len(ask.questions), *(len(q.options) for q in ask.questions)]) > APPROVALS


def _approval(ask: Ask, times: Mapping[str, AskTimes], size: _Size) -> Approval:
    approval: Approval
    if isinstance(ask, PermissionRequest):
        approval = {
            "id": ask.id,
            "kind": "permission",
            "sessionId": ask.session_id,
            "permission": short(ask.permission, size.text),
            "patterns": [short(pattern, size.text) for pattern in ask.patterns[: size.items]],
        }
    else:
        approval = {
            "id": ask.id,
            "kind": "question",
            "sessionId": ask.session_id,
            "questions": _questions(ask, size),
        }
    if ask.id in times:
        approval["askedAt"] = iso(times[ask.id].asked_at)
        approval["deadlineAt"] = iso(times[ask.id].deadline_at)
    return approval


def _questions(ask: QuestionRequest, size: _Size) -> list[Question]:
    return [
        {
            "question": short(item.question, size.text),
            "header": short(item.header, size.text),
            "options": [_option(o.label, o.description, size) for o in item.options[: size.items]],
            "multiple": item.multiple,
            "custom": item.custom,
        }
        for item in ask.questions[: size.items]
    ]


def _option(label: str, description: str, size: _Size) -> Option:
    option: Option = {"label": short(label)}
    if size.description:
        option["description"] = short(description, size.description)
    return option


def told_in_text(approval: Approval) -> str:
    """Return what the text says of an ask, in one line that is no longer than its fields."""
    if approval["kind"] == "permission":
        what = ", ".join(short(pattern, 100) for pattern in approval.get("patterns", [])[:3])
        about = f"{short(approval.get('permission', ''), 100)} {what}".strip()
        return f"Waiting for permission {approval['id']}: {about}"
    questions = approval.get("questions", [])
    return (
        f"Waiting for an answer {approval['id']}: {questions[0]['question'] if questions else ''}"
    )

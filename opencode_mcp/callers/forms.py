"""What a person is shown when OpenCode asks, and what their answer means. Pure.

MCP forms are flat objects of plain values, so each item of a question is one field, `q1`, `q2`, …,
with a second one, `q1_text`, where an answer in one's own words is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from opencode_mcp.callers.sizing import short
from opencode_mcp.engine.answers import Allow, Answer, Reject
from opencode_mcp.engine.approvals import for_model
from opencode_mcp.opencode.models import PermissionRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opencode_mcp.engine.answers import Ask
    from opencode_mcp.opencode.models import QuestionItem

_PATTERNS = 10
_FEEDBACK_CHARS = 2_000

DECLINED = "the person at the client declined"
NOBODY = "no person is there to answer: the client dismissed the question"


@dataclass(frozen=True, slots=True)
class Form:
    """A message with the JSON Schema of its answer."""

    message: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be answered, and why for the turn's result, where it is no."""

    answer: Answer
    why: str | None = None


def form_of(ask: Ask, session_id: str) -> Form:
    """Return what to show a person for an ask in the tree of this session."""
    who = "An OpenCode agent" if ask.session_id == session_id else "An OpenCode sub-agent"
    if isinstance(ask, PermissionRequest):
        patterns = ", ".join(short(pattern) for pattern in ask.patterns[:_PATTERNS])
        return Form(
            f"{who} (session {session_id}) asks for permission: {short(ask.permission)}"
            f"{f' {patterns}' if patterns else ''}. Allow it this once?",
            _object(
                allow={"type": "boolean", "title": "Allow it this once", "default": True},
                feedback={"type": "string", "title": "If not: what to do instead"},
            ),
        )
    fields: dict[str, dict[str, Any]] = {}
    for number, item in enumerate(ask.questions, start=1):
        fields |= _fields(f"q{number}", item)
    texts = " ".join(short(item.question) for item in ask.questions)
    return Form(f"{who} (session {session_id}) asks: {texts}", _object(**fields))


def _object(**fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def _fields(name: str, item: QuestionItem) -> dict[str, dict[str, Any]]:
    title = {"title": short(item.header or item.question), "description": short(item.question)}
    labels = [option.label for option in item.options]
    if not labels:
        return {name: {"type": "string", **title}}
    choice: dict[str, Any] = {"type": "string", "enum": labels}
    if item.multiple:
        choice = {"type": "array", "items": choice}
    fields: dict[str, dict[str, Any]] = {name: {**choice, **title}}
    if item.custom:
        fields[f"{name}_text"] = {"type": "string", "title": "Or in your own words"}
    return fields


def decision_of(
    ask: Ask, action: Literal["accept", "decline", "cancel"], content: Mapping[str, object] | None
) -> Decision:
    """Return what a person's answer to the form means.

    Accepting means yes, unless the form itself says no; a form that leaves a question open is no
    answer. Cancelling means that nobody is there (headless clients do so at once).
    """
    given = content or {}
    if action == "cancel":
        return _no(ask, NOBODY, None)
    if action == "decline":
        return _no(ask, DECLINED, "The person declined this.")
    if isinstance(ask, PermissionRequest):
        if given.get("allow", True) is True:
            return Decision(Allow())
        feedback = str(given.get("feedback") or "").strip()[:_FEEDBACK_CHARS]
        return _no(ask, DECLINED, f"The person declined this. {feedback}".strip())
    answers = tuple(
        _chosen(f"q{number}", item, given) for number, item in enumerate(ask.questions, start=1)
    )
    if not all(answers):
        return _no(ask, f"{DECLINED}: a question was left open", None)
    return Decision(Allow(answers))


def _no(ask: Ask, why: str, message: str | None) -> Decision:
    if not isinstance(ask, PermissionRequest):  # takes no message
        return Decision(Reject(), why)
    return Decision(Reject(message or for_model(why)), why)


def _chosen(name: str, item: QuestionItem, given: Mapping[str, object]) -> tuple[str, ...]:
    value, text = given.get(name), given.get(f"{name}_text")
    listed = value if isinstance(value, list) else [value]
    labels = [one for one in listed if isinstance(one, str) and one.strip()]
    if item.custom and isinstance(text, str) and text.strip():
        return (*labels, text) if item.multiple else (text,)
    return tuple(labels if item.multiple else labels[:1])

"""Messages and evidence for tests, shaped as OpenCode 1.18.33 sends them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from opencode_mcp.engine.outcome import Evidence, Unread, Verdict, judge
from opencode_mcp.opencode.models import Message, PermissionRequest, RemoteStatus

if TYPE_CHECKING:
    from opencode_mcp.records import StopReason

Json = dict[str, object]

ASK = PermissionRequest(id="per_1", session_id="ses_1", permission="bash", patterns=["ls"])
BUSY = RemoteStatus(type="busy")
#: a prompt, and when it was made (milliseconds since 1970)
START_MS = 1_000_000
_ids = itertools.count(1)


def message(role: str, *parts: Json, at_ms: int, **more: object) -> Message:
    """Make a message; `more` are fields of its info."""
    info: Json = {
        "id": f"msg_{next(_ids)}",
        "sessionID": "ses_1",
        "role": role,
        "time": {"created": at_ms},
        **more,
    }
    return Message.model_validate({"info": info, "parts": list(parts)})


def user(*parts: Json, at_ms: int = START_MS, **more: object) -> Message:
    """Make a prompt."""
    return message("user", *(parts or (text("the prompt"),)), at_ms=at_ms, **more)


def assistant(
    *parts: Json,
    finish: str | None = "stop",
    completed: bool = True,
    at_ms: int = START_MS + 100,
    **more: object,
) -> Message:
    """Make a step that took 100 ms, or is not complete."""
    fields: Json = {
        "time": {"created": at_ms, "completed": at_ms + 100} if completed else {"created": at_ms},
        "finish": finish,
        "agent": "build",
        "providerID": "p",
        "modelID": "m",
        "path": {"cwd": "/repo/sub", "root": "/repo"},
        **more,
    }
    return message("assistant", *parts, at_ms=at_ms, **fields)


def text(said: str, **more: object) -> Json:
    """Make a text part."""
    return {"id": "prt_1", "type": "text", "text": said, **more}


def reasoning(thought: str) -> Json:
    """Make a part that no caller sees."""
    return {"id": "prt_3", "type": "reasoning", "text": thought}


def tool(status: str, name: str = "bash", **more: object) -> Json:
    """Make a tool call's part; `more` are fields of its state."""
    return {"id": "prt_2", "type": "tool", "tool": name, "state": {"status": status, **more}}


def invalid() -> Json:
    """Make OpenCode's stand-in for a call of an unknown tool."""
    return tool("completed", "invalid", input={"tool": "nosuch"}, title="Invalid Tool")


def error(name: str, **data: object) -> Json:
    """Make a message's error."""
    return {"name": name, "data": {"message": "it broke", **data}}


ABORTED = error("MessageAbortedError")
#: a step that called a tool, and one that said the last word
CALLED = assistant(text("I will look"), tool("completed"), finish="tool-calls")
SAID = assistant(text("hi"))


def summary(*, at_ms: int = START_MS + 300, **more: Any) -> list[Message]:  # noqa: ANN401 - fields of its info
    """Make what a compaction writes: a user message without words, and the summary."""
    asked = user({"id": "prt_4", "type": "compaction", "auto": True}, at_ms=at_ms)
    return [asked, assistant(text("what was"), summary=True, at_ms=at_ms + 1, **more)]


def go_on(*, at_ms: int = START_MS + 500) -> Message:
    """Make the user message with which OpenCode goes on after a compaction."""
    return user(text("Continue if you have next steps", synthetic=True), at_ms=at_ms)


def evidence(  # noqa: PLR0913 - one field each
    *messages: Message,
    status: RemoteStatus | None = None,
    pending: tuple[PermissionRequest, ...] = (),
    stop: StopReason | None = None,
    settled: bool = True,
    overdue_busy: bool = False,
    unread: Unread | None = None,
    session_error: str | None = None,
) -> Evidence:
    """Make evidence; as it stands, of a session that is idle for good."""
    return Evidence(
        messages,
        status,
        pending,
        stop,
        settled,
        overdue_busy=overdue_busy,
        unread=unread,
        session_error=session_error,
    )


def judged(*messages: Message, **more: Any) -> Verdict:  # noqa: ANN401 - as in `evidence`
    """Judge messages; `more` as in `evidence`."""
    return judge(evidence(*messages, **more))

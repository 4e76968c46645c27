"""Compaction: a summary in the middle of a history, which is nobody's answer (facts 11.3).

Measured on 1.18.33: a user message with a `compaction` part, an assistant message with
`summary: true`, and, when OpenCode does it by itself, a synthetic user message that goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.twin.shapes import Json, new_id, now_ms
from tests.twin.writing import Answer

if TYPE_CHECKING:
    from tests.twin.runs import Runs
    from tests.twin.turn import Run

_GO_ON = (
    "Continue if you have next steps, or stop and ask for clarification if you are unsure how to"
    " proceed."
)


class Compactor:
    """Summarises histories."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._due: set[str] = set()

    def plan(self, session_id: str) -> None:
        """Let the session be compacted after its next step, as if its context were full."""
        self._due.add(session_id)

    def is_due(self, session_id: str) -> bool:
        """Whether that was planned; it is done once."""
        if session_id not in self._due:
            return False
        self._due.discard(session_id)
        return True

    def compact(self, run: Run, *, auto: bool) -> None:
        """Write a summary into the history; `auto`: go on with the turn afterwards."""
        session, world = run.session, self._runs.world
        part = {"type": "compaction", "auto": auto}
        user = self._user(session, {**part, "overflow": False} if auto else part)
        run.set_status({"type": "busy"})
        named = {"mode": "compaction", "agent": "compaction", "summary": True}
        answer = Answer(world, session, user, **named)
        run.set_status({"type": "busy"})
        answer.begin()
        answer.say("Scripted title")
        answer.end_text()
        answer.finish("stop")
        if auto:
            now = now_ms()
            text = {"type": "text", "text": _GO_ON, "synthetic": True}
            self._user(session, {**text, "time": {"start": now, "end": now}})
        self._runs.bus.publish(run.directory, "session.compacted", sessionID=session["id"])

    def _user(self, session: Json, part: Json) -> Json:
        world = self._runs.world
        model = session["model"]
        info = {
            "id": new_id("msg"),
            "role": "user",
            "sessionID": session["id"],
            "time": {"created": now_ms()},
            "agent": session.get("agent", "build"),
            "model": {"providerID": model["providerID"], "modelID": model["id"]},
        }
        world.put_message(info)
        world.put_part(info, part)
        return info

"""One assistant message while it is written: its parts, its end (facts 3.5-3.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.twin.changes import root_of
from tests.twin.shapes import NO_TOKENS, STEP_TOKENS, Json, new_id, now_ms

if TYPE_CHECKING:
    from tests.twin.world import World


class Answer:
    """The message of one step."""

    def __init__(self, world: World, session: Json, user: Json, **more: object) -> None:
        self._world = world
        self._session = session
        self._text: Json | None = None
        self._said = ""
        self.info: Json = {
            "id": new_id("msg"),
            "sessionID": session["id"],
            "role": "assistant",
            "time": {"created": now_ms()},
            "parentID": user["id"],
            "modelID": user["model"]["modelID"],
            "providerID": user["model"]["providerID"],
            "mode": user["agent"],
            "agent": user["agent"],
            "path": {"cwd": session["directory"], "root": root_of(session["directory"])},
            "cost": 0,
            "tokens": NO_TOKENS,
            **more,
        }
        world.put_message(self.info)

    def begin(self) -> None:
        """Note that the model began to answer."""
        self.put({"type": "step-start"})

    def put(self, part: Json) -> Json:
        """Store a part."""
        return self._world.put_part(self.info, part)

    def say(self, delta: str) -> None:
        """Stream a piece of text. It is stored only when its part ends (facts 3.7)."""
        if self._text is None:
            start = {"start": now_ms()}
            self._text = self.put({"type": "text", "text": "", "time": start})
        self._said += delta
        self._world.tell_delta(self._session, self._text, delta)

    def end_text(self) -> None:
        """Store the text that was streamed, if any was."""
        part, said = self._text, self._said
        self._text, self._said = None, ""
        if part is not None:
            time = {**part["time"], "end": now_ms()}
            self.put({**part, "text": said, "time": time})

    def start_over(self) -> None:
        """Leave what a failed try has streamed as it is stored, empty; the next one adds to it."""
        self._text, self._said = None, ""

    def finish(self, reason: str, fault: Json | None = None) -> None:
        """End the step; the message is told twice, and once more with its error."""
        self.put({"type": "step-finish", "reason": reason, "tokens": STEP_TOKENS, "cost": 0})
        total = self._session["tokens"]
        total |= {name: total[name] + STEP_TOKENS[name] for name in ("input", "output")}
        error = {} if fault is None else {"error": fault}
        self.info = {**self.info, "finish": reason, "tokens": STEP_TOKENS, **error}
        self.complete()
        self._world.put_message(self.info)
        if fault is not None:
            self._world.put_message(self.info)

    def fail(self, fault: Json) -> None:
        """End the message with an error, without a finish."""
        self.info = {**self.info, "error": fault}
        self.complete()

    def complete(self) -> None:
        """Note the time of the end."""
        time = {**self.info["time"], "completed": now_ms()}
        self.info = {**self.info, "time": time}
        self._world.put_message(self.info)

"""What OpenCode keeps on disk: sessions, messages, parts. It survives a kill (facts 9.1, 9.2).

Every change is published. Text that is being streamed is not here: it is stored when its part
ends (facts 3.7), so a kill loses it.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from tests.twin.shapes import NO_TOKENS, VERSION, Json, new_id, now_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.twin.events import Bus


class RowGoneError(Exception):
    """Something was to be stored for a session that was deleted (facts 6.2)."""


class World:
    """All sessions of all folders."""

    def __init__(self, bus: Bus) -> None:
        self.sessions: dict[str, Json] = {}
        self._messages: dict[str, list[Json]] = {}
        self._bus = bus

    def share(self, other: World) -> None:
        """Work on another one's data, as an OpenCode that was moved to another address."""
        self.sessions, self._messages = other.sessions, other._messages

    def create(self, directory: str, body: Json) -> Json:
        """Make a session; nothing is checked against reality (facts 1.2)."""
        moment = now_ms()
        kept = ("parentID", "agent", "model", "metadata", "permission")
        session: Json = {
            "id": new_id("ses"),
            "slug": "quiet-twin",
            "version": VERSION,
            "projectID": "global",
            "directory": directory,
            "path": directory.lstrip("/"),
            "title": body.get("title") or f"New session - {moment}",
            "cost": 0,
            "tokens": copy.deepcopy(NO_TOKENS),
            "time": {"created": moment, "updated": moment},
            **{name: copy.deepcopy(body[name]) for name in kept if body.get(name) is not None},
        }
        self.sessions[session["id"]] = session
        self._messages[session["id"]] = []
        self._tell(session, "session.created", info=session)
        return session

    def touch(self, session: Json, **changes: object) -> None:
        """Change a session, or only its time."""
        session |= copy.deepcopy(changes)
        session["time"]["updated"] = now_ms()
        self._tell(session, "session.updated", info=session)

    def children(self, session_id: str) -> list[Json]:
        """Return the direct children (facts 7.1)."""
        return [one for one in self.sessions.values() if one.get("parentID") == session_id]

    def delete(self, session_id: str) -> None:
        """Delete a session and its descendants, each with an event (facts 7.6)."""
        for child in self.children(session_id):
            self.delete(child["id"])
        session = self.sessions.pop(session_id, None)
        if session is not None:
            del self._messages[session_id]
            self._tell(session, "session.deleted", info=session)

    def fork(self, session: Json, before: str | None) -> Json:
        """Copy a session with its messages, or those before one (facts 11.3): not a child."""
        made = self.create(session["directory"], {"title": f"{session['title']} (fork #1)"})
        for message in self._messages[session["id"]]:
            if message["info"]["id"] == before:
                break
            twin = copy.deepcopy(message)
            twin["info"] |= {"id": new_id("msg"), "sessionID": made["id"]}
            for part in twin["parts"]:
                part |= {"id": new_id("prt"), "messageID": twin["info"]["id"]}
                part["sessionID"] = made["id"]
            self._messages[made["id"]].append(twin)
        return made

    def messages(self, session_id: str) -> list[Json]:
        """Return the history, oldest first; empty for a deleted session."""
        return self._messages.get(session_id, [])

    def message(self, session_id: str, message_id: str) -> Json | None:
        """Return one message."""
        found = (m for m in self.messages(session_id) if m["info"]["id"] == message_id)
        return next(found, None)

    def put_message(self, info: Json) -> Json:
        """Store a new message, or a new state of one."""
        session = self._session(info["sessionID"])
        message = self.message(session["id"], info["id"])
        if message is None:
            message = {"info": info, "parts": []}
            self._messages[session["id"]].append(message)
        else:
            message["info"] = info
        self._tell(session, "message.updated", info=info)
        return message

    def put_part(self, info: Json, part: Json) -> Json:
        """Store a new part of a message, or a new state of one."""
        session = self._session(info["sessionID"])
        message = self.message(session["id"], info["id"])
        if message is None:
            raise RowGoneError
        place = {"messageID": info["id"], "sessionID": session["id"]}
        part = {"id": new_id("prt"), **part, **place}
        for index, known in enumerate(message["parts"]):
            if known["id"] == part["id"]:
                message["parts"][index] = part
                break
        else:
            message["parts"].append(part)
        self._tell(session, "message.part.updated", part=part, time=now_ms())
        return part

    def tell_delta(self, session: Json, part: Json, delta: str) -> None:
        """Stream a piece of a text; of a deleted session too (facts 6.2). Nothing is stored."""
        place = {"messageID": part["messageID"], "partID": part["id"]}
        self._tell(session, "message.part.delta", **place, field="text", delta=delta)

    def of(self, directory: str | None) -> Iterator[Json]:
        """Give the sessions of a folder, or of all, newest first (facts 1.5)."""
        for session in reversed(self.sessions.values()):
            if directory in {None, session["directory"]}:
                yield session

    def _session(self, session_id: str) -> Json:
        try:
            return self.sessions[session_id]
        except KeyError:
            raise RowGoneError from None

    def _tell(self, session: Json, kind: str, **properties: object) -> None:
        self._bus.publish(session["directory"], kind, sessionID=session["id"], **properties)

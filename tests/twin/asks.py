"""What waits for leave or for an answer. It lives in memory, and outlives an abort (facts 5)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.twin.rules import verdict
from tests.twin.shapes import Json, new_id

if TYPE_CHECKING:
    from tests.twin.events import Bus


class RejectedError(Exception):
    """Somebody said no; with `feedback` the turn goes on (facts 5.3)."""

    def __init__(self, text: str, *, ends_turn: bool) -> None:
        super().__init__(text)
        self.ends_turn = ends_turn


_NO = "The user rejected permission to use this specific tool call"
_DISMISSED = "The user dismissed this question"


@dataclass(slots=True)
class Ask:
    """One request that waits; `entry` is its shape on the wire."""

    kind: str
    directory: str
    entry: Json
    answered: asyncio.Future[list[list[str]]] = field(repr=False)

    @property
    def session_id(self) -> str:
        """Whose it is: a subagent's carries the child's id (facts 7.4)."""
        return str(self.entry["sessionID"])

    def reject(self, text: str, *, ends_turn: bool) -> None:
        """Fail the tool call that waits, if it still does."""
        if not self.answered.done():
            self.answered.set_exception(RejectedError(text, ends_turn=ends_turn))
            self.answered.exception()  # an orphan has nobody who would fetch it

    def grant(self, answers: list[list[str]]) -> None:
        """Let the tool call go on, if it still waits."""
        if not self.answered.done():
            self.answered.set_result(answers)


class Asks:
    """All requests of all folders, and what was allowed for good."""

    def __init__(self, bus: Bus) -> None:
        self.pending: dict[str, Ask] = {}
        self._always: dict[str, list[Json]] = {}
        self._bus = bus

    def allowed(self, directory: str) -> list[Json]:
        """Return what somebody allowed for good in this folder (facts 5.4)."""
        return self._always.setdefault(directory, [])

    def of(self, kind: str, directory: str) -> list[Json]:
        """List what waits in exactly this folder (facts 5.1)."""
        return [
            ask.entry
            for ask in self.pending.values()
            if ask.kind == kind and ask.directory == directory
        ]

    def open(self, kind: str, directory: str, **entry: object) -> Ask:
        """Ask; await `answered` for the answer, which may be a RejectedError.

        Who stops waiting leaves it listed: an abort does so (facts 5.5).
        """
        prefix = {"permission": "per", "question": "que"}[kind]
        future: asyncio.Future[list[list[str]]] = asyncio.get_running_loop().create_future()
        ask = Ask(kind, directory, {"id": new_id(prefix), **entry}, future)
        self.pending[ask.entry["id"]] = ask
        self._bus.publish(directory, f"{kind}.asked", **ask.entry)
        return ask

    def reply(self, ask: Ask, reply: str, message: str | None) -> None:
        """Answer a permission."""
        self._close(ask, "permission.replied", reply=reply)
        if reply == "reject":
            text = f"{_NO} with the following feedback: {message}" if message else f"{_NO}."
            ask.reject(text, ends_turn=not message)
            for other in self._siblings(ask):  # they go with it (facts 5.4)
                self._close(other, "permission.replied", reply="reject")
                other.reject(f"{_NO}.", ends_turn=True)
            return
        ask.grant([])
        if reply == "always":
            allowed = self.allowed(ask.directory)
            for pattern in ask.entry["always"]:
                rule = {"permission": ask.entry["permission"], "pattern": pattern}
                allowed.append({**rule, "action": "allow"})
            for other in self._siblings(ask):
                if self._is_allowed(other):
                    self._close(other, "permission.replied", reply="always")
                    other.grant([])

    def answer(self, ask: Ask, answers: list[list[str]]) -> None:
        """Answer a question."""
        self._close(ask, "question.replied", answers=answers)
        ask.grant(answers)

    def dismiss(self, ask: Ask) -> None:
        """Reject a question."""
        self._close(ask, "question.rejected")
        ask.reject(_DISMISSED, ends_turn=True)

    def forget(self, directory: str | None) -> None:
        """Drop what a folder, or everybody, waits for, and what was allowed for good.

        A dispose and a restart do so (facts 5.5, 9.1; the latter measured).
        """
        for ask in [*self.pending.values()]:
            if directory in {None, ask.directory}:
                del self.pending[ask.entry["id"]]
        if directory is None:
            self._always.clear()
        else:
            self._always.pop(directory, None)

    def _siblings(self, ask: Ask) -> list[Ask]:
        return [
            other
            for other in self.pending.values()
            if other.kind == ask.kind and other.session_id == ask.session_id
        ]

    def _is_allowed(self, ask: Ask) -> bool:
        permission, rules = ask.entry["permission"], self.allowed(ask.directory)
        return all(verdict(rules, permission, p) == "allow" for p in ask.entry["patterns"])

    def _close(self, ask: Ask, kind: str, **said: object) -> None:
        del self.pending[ask.entry["id"]]
        known = {"sessionID": ask.session_id, "requestID": ask.entry["id"]}
        self._bus.publish(ask.directory, kind, **known, **said)

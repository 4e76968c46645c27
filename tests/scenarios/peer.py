"""The other side of a scenario: the twin or the real OpenCode, seen through the same window."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import aiohttp

from opencode_mcp.engine.ids import new_message_id
from tests.scenarios.hearing import Hearing
from tests.support.polling import PATIENCE_S, eventually

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from opencode_mcp.cli.scripted_model import ModelRequest, ScriptedModel
    from tests.twin.model import Model
    from tests.twin.shapes import Json


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; `body` is JSON where it is some, else text."""

    status: int
    body: Any
    headers: Mapping[str, str]


@dataclass(slots=True)
class Place:
    """Where a peer is and which folders it may use: in one all is allowed, in one all is asked."""

    url: str
    username: str
    password: str
    model: ScriptedModel | Model
    project: Path
    asking: Path


class Peer:
    """An async context manager: a raw client. Leaving it ends all that the scenario began."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.project, self.asking = str(place.project), str(place.asking)
        self._created: list[str] = []

    async def __aenter__(self) -> Self:
        place = self.place
        self._http = aiohttp.ClientSession(
            place.url,
            headers={"Authorization": aiohttp.encode_basic_auth(place.username, place.password)},
            timeout=aiohttp.ClientTimeout(total=30),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._clear()
        finally:
            await self._http.close()

    async def call(self, method: str, path: str, body: object = None, /, **query: str) -> Reply:
        """Send a request as it is."""
        async with self._http.request(method, path, params=query, json=body) as answer:
            is_json = answer.content_type == "application/json"
            said = await (answer.json() if is_json else answer.text())
            return Reply(answer.status, said, answer.headers)

    async def anonymously(self, path: str) -> Reply:
        """Read without credentials."""
        async with aiohttp.ClientSession(self.place.url) as http, http.get(path) as answer:
            return Reply(answer.status, await answer.text(), answer.headers)

    async def get(self, path: str, **query: str) -> Any:  # noqa: ANN401 - JSON, typed by each caller
        """Read something that must be there."""
        reply = await self.call("GET", path, **query)
        assert reply.status == 200, reply
        return reply.body

    async def post(self, path: str, body: object = None, /, **query: str) -> Reply:
        """Do something."""
        return await self.call("POST", path, body, **query)

    def hear(self, path: str = "/global/event", **headers: str) -> Hearing:
        """Listen to an event stream."""
        return Hearing(self._http, path, **headers)

    async def create(self, directory: str | None = None, **body: object) -> str:
        """Make a session, in the folder that allows everything unless told otherwise."""
        reply = await self.post("/session", body, directory=directory or self.project)
        assert reply.status == 200, reply
        self._created.append(reply.body["id"])
        return str(reply.body["id"])

    async def prompt(self, session_id: str, text: str, **more: object) -> str:
        """Hand in a prompt and return its message id."""
        message_id = str(more.pop("messageID", new_message_id()))
        parts = more.pop("parts", [{"type": "text", "text": text}])
        body = {"messageID": message_id, "parts": parts, **more}
        reply = await self.post(f"/session/{session_id}/prompt_async", body)
        assert (reply.status, reply.body) == (204, "")
        return message_id

    async def begin(self, text: str, directory: str | None = None, **body: object) -> str:
        """Make a session and hand in its first prompt."""
        session_id = await self.create(directory, **body)
        await self.prompt(session_id, text)
        return session_id

    async def run(self, text: str, directory: str | None = None, **body: object) -> str:
        """Make a session and wait until its first turn is over."""
        session_id = await self.begin(text, directory, **body)
        await self.answered(session_id)
        return session_id

    async def abort(self, session_id: str, **query: str) -> None:
        """Stop a session; the answer is always the same (facts 4.5)."""
        reply = await self.post(f"/session/{session_id}/abort", **query)
        assert (reply.status, reply.body) == (200, True)

    async def session(self, session_id: str) -> Json:
        """Read a session."""
        found: Json = await self.get(f"/session/{session_id}")
        return found

    async def messages(self, session_id: str) -> list[Json]:
        """Read the history."""
        found: list[Json] = await self.get(f"/session/{session_id}/message")
        return found

    async def answers(self, session_id: str) -> list[Json]:
        """Read the assistant's messages."""
        history = await self.messages(session_id)
        return [message for message in history if message["info"]["role"] == "assistant"]

    async def newest(self, session_id: str) -> Json:
        """Read the newest message."""
        return (await self.messages(session_id))[-1]

    async def statuses(self, directory: str | None = None) -> dict[str, Json]:
        """Read who is not idle."""
        found: dict[str, Json] = await self.get(
            "/session/status", directory=directory or self.project
        )
        return found

    async def is_busy(self, session_id: str, directory: str | None = None) -> bool:
        """Whether the status lists a session."""
        return session_id in await self.statuses(directory)

    async def asks(self, session_id: str, kind: str, directory: str | None = None) -> list[Json]:
        """Read what waits for an answer, of one session."""
        found = await self.get(f"/{kind}", directory=directory or self.asking)
        return [ask for ask in found if ask["sessionID"] == session_id]

    async def asked(
        self,
        session_id: str,
        kind: str = "permission",
        directory: str | None = None,
        count: int = 1,
    ) -> list[Json]:
        """Wait until so much waits for an answer."""

        async def check() -> list[Json]:
            found = await self.asks(session_id, kind, directory)
            return found if len(found) >= count else []

        return await eventually(check, what=f"{kind} asked by {session_id}")

    async def reply(
        self, ask: Json, reply: str, directory: str | None = None, **more: str
    ) -> Reply:
        """Answer a permission."""
        path = f"/permission/{ask['id']}/reply"
        return await self.post(path, {"reply": reply, **more}, directory=directory or self.asking)

    async def reject(self, kind: str, ask: Json, directory: str) -> Reply:
        """Say no, without a word."""
        if kind == "permission":
            return await self.reply(ask, "reject", directory)
        return await self.post(f"/question/{ask['id']}/reject", directory=directory)

    def streams(self, session_id: str) -> list[ModelRequest]:
        """Return the model's open streams for a session."""
        return [one for one in self.place.model.open_streams if one.session_id == session_id]

    def requests(self, session_id: str) -> list[ModelRequest]:
        """Return what a session asked the model, without titles."""
        model = self.place.model
        return [one for one in model.requests if one.session_id == session_id and one.tools]

    async def streaming(self, session_id: str) -> None:
        """Wait until the model answers a session."""

        async def check() -> bool:
            return bool(self.streams(session_id))

        await eventually(check, what=f"the model answers {session_id}")

    async def answered(self, session_id: str) -> Json:
        """Wait until the newest message is complete and nothing runs, and return it."""

        async def check() -> Json | None:
            history = await self.messages(session_id)
            if not history or "completed" not in history[-1]["info"]["time"]:
                return None
            directory = (await self.session(session_id))["directory"]
            return None if await self.is_busy(session_id, directory) else history[-1]

        found = await eventually(check, what=f"{session_id} is answered")
        assert found is not None
        return found

    async def quiet(
        self, session_id: str, directory: str | None = None, *, within_s: float = PATIENCE_S
    ) -> None:
        """Wait until nothing of a session runs."""

        async def check() -> bool:
            return not await self.is_busy(session_id, directory)

        await eventually(check, within_s=within_s, what=f"{session_id} is idle")

    async def children(self, session_id: str) -> list[Json]:
        """Wait until a session has children, and return them."""

        async def check() -> list[Json]:
            found: list[Json] = await self.get(f"/session/{session_id}/children")
            return found

        return await eventually(check, what=f"{session_id} has a child")

    async def _clear(self) -> None:
        for directory in (self.project, self.asking):
            for session_id in await self.statuses(directory):
                await self.abort(session_id, directory=directory)  # it may be a deleted one
            for kind in ("permission", "question"):
                for ask in await self.get(f"/{kind}", directory=directory):
                    await self.reject(kind, ask, directory)
        await asyncio.gather(*(self.call("DELETE", f"/session/{i}") for i in self._created))


def text_of(message: Json) -> str:
    """Return what a message says."""
    return "".join(part.get("text", "") for part in message["parts"] if part["type"] == "text")


def tools_of(message: Json) -> list[Json]:
    """Return the states of a message's tool calls."""
    return [part["state"] for part in message["parts"] if part["type"] == "tool"]

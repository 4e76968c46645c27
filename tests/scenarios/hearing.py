"""An event stream as a test hears it."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import aiohttp

from tests.support.polling import PATIENCE_S, eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tests.twin.shapes import Json

#: a session that does not exist
_NOBODY = "ses_nobody"
#: told at no fixed moment, or once too often: nobody may rely on their place
_LOOSE = ("session.updated", "session.diff", "message.part.delta", "server.heartbeat")


class Hearing:
    """An async context manager that listens from the moment it is entered."""

    def __init__(self, http: aiohttp.ClientSession, path: str, **headers: str) -> None:
        self._http = http
        self._path = path
        self._headers = headers
        #: whole frames, in order
        self.frames: list[Json] = []
        self.ended = asyncio.Event()
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._listen())
        await self.until(lambda event: event["type"] == "server.connected")
        await eventually(self._can_hear, what="the stream hears")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    @property
    def events(self) -> list[Json]:
        """What was said: type and properties, copies left out (facts 3.2)."""
        said = [frame.get("payload", frame) for frame in self.frames]
        return [event for event in said if event["type"] != "sync"]

    def of(self, session_id: str) -> list[Json]:
        """Return what was said about a session."""
        return [e for e in self.events if e["properties"].get("sessionID") == session_id]

    def kinds(self, session_id: str) -> list[str]:
        """Return the types of what was said about a session, those without a fixed place left out.

        A status is told with its type, a part with its type or, for a tool, its state.
        """
        return [_kind(event) for event in self.of(session_id) if event["type"] not in _LOOSE]

    async def until(self, wanted: Callable[[Json], bool], count: int = 1) -> list[Json]:
        """Wait for so many events of a kind, and return them."""
        async with asyncio.timeout(PATIENCE_S):
            while len(found := [event for event in self.events if wanted(event)]) < count:
                self._news.clear()
                await self._news.wait()
        return found

    async def idle(self, session_id: str, count: int = 1) -> None:
        """Wait until it was said so often that a session is idle."""

        def is_idle(event: Json) -> bool:
            about = event["properties"].get("sessionID")
            return (event["type"], about) == ("session.idle", session_id)

        await self.until(is_idle, count)

    async def tries_again(self, session_id: str) -> bool:
        """Wait until a deleted session's turn is over, and tell whether OpenCode goes on with it.

        Measured (9 of 78): where OpenCode cannot write down the end of a step, since the session
        is gone, it takes that for the model's fault ("retry") and asks its model again, until
        somebody aborts it.
        """

        def is_over(event: Json) -> bool:
            properties = event["properties"]
            if properties.get("sessionID") != session_id:
                return False
            if event["type"] == "session.status":
                return bool(properties["status"]["type"] == "retry")
            return bool(event["type"] == "session.idle")

        await self.until(is_over)
        return "retry" in self.kinds(session_id)

    async def _can_hear(self) -> bool:
        """Make a noise, and tell whether one was heard.

        Measured: what happens just after `server.connected` is lost (14 of 25). An abort of a
        session that does not exist changes nothing and is told (facts 3.8, 4.5).
        """
        query = self._path.partition("?")[2]
        path = f"/session/{_NOBODY}/abort?{query}"
        async with self._http.post(path, headers=self._headers):
            return bool(self.of(_NOBODY))

    async def _listen(self) -> None:
        timeout = aiohttp.ClientTimeout(total=None)
        with suppress(aiohttp.ClientError):
            async with self._http.get(self._path, headers=self._headers, timeout=timeout) as stream:
                rest = b""  # lines of any length: an event may hold a whole file
                async for chunk in stream.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    self.frames += [json.loads(line[5:]) for line in lines if line[:5] == b"data:"]
                    self._news.set()
        self.ended.set()


def _kind(event: Json) -> str:
    properties = event["properties"]
    match event["type"]:
        case "session.status":
            return str(properties["status"]["type"])
        case "message.updated":
            return str(properties["info"]["role"])
        case "message.part.updated":
            part = properties["part"]
            return str(part["state"]["status"] if part["type"] == "tool" else part["type"])
        case kind:
            return str(kind)

"""The same requests without us: one keep-alive aiohttp session, nothing remembered or checked."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

import aiohttp

from bench.measure import Stopwatch
from tests.support.polling import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType

_PAUSE_S = 0.05


class ByHand:
    """Does a turn and an end as a script would that knows the facts file."""

    def __init__(self, url: str, password: str, directory: str) -> None:
        self._url = url
        self._query = {"directory": directory}
        self._headers = {"Authorization": aiohttp.encode_basic_auth("opencode", password)}

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(self._url, headers=self._headers)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.close()

    async def _call(self, method: str, path: str, **more: Any) -> Any:  # noqa: ANN401 - JSON
        async with self._http.request(method, path, **more) as answer:
            body = await answer.read()
            return json.loads(body) if body else None

    async def create(self) -> str:
        """Create a session."""
        session = await self._call("POST", "/session", params=self._query, json={})
        return str(session["id"])

    async def turn(self, prompt: str) -> tuple[str, float]:
        """Create, subscribe, prompt, wait for idle, read; return the id and the milliseconds."""
        watch = Stopwatch()
        session_id = await self.create()
        timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
        async with self._http.get("/global/event", timeout=timeout) as events:
            await events.content.readline()
            body = {"parts": [{"type": "text", "text": prompt}]}
            await self._call("POST", f"/session/{session_id}/prompt_async", json=body)
            async for line in events.content:
                if b'"session.idle"' in line and session_id.encode() in line:
                    break
        messages = await self._call("GET", f"/session/{session_id}/message")
        if messages[-1]["info"].get("finish") != "stop":
            message = f"the turn by hand did not end well: {messages[-1]['info']}"
            raise RuntimeError(message)
        return session_id, watch.ms

    async def prompt(self, text: str) -> str:
        """Create a session and prompt it; return its id."""
        session_id = await self.create()
        body = {"parts": [{"type": "text", "text": text}]}
        await self._call("POST", f"/session/{session_id}/prompt_async", json=body)
        return session_id

    async def read(self, session_id: str) -> None:
        """Do the reads that an answer needs: the status and the messages, at once."""
        status, messages = await asyncio.gather(
            self._call("GET", "/session/status", params=self._query),
            self._call("GET", f"/session/{session_id}/message", params={"limit": "20"}),
        )
        if session_id in status or messages[-1]["info"].get("finish") != "stop":
            message = f"the turn by hand did not end well: {messages[-1]['info']}"
            raise RuntimeError(message)

    async def answer(self, session_id: str) -> str:
        """Read the session's only turn and put the text of its answer together."""
        messages = await self._call("GET", f"/session/{session_id}/message")
        parts = messages[-1]["parts"]
        return "".join(part["text"] for part in parts if part["type"] == "text")

    @asynccontextmanager
    async def events(self) -> AsyncIterator[aiohttp.StreamReader]:
        """Open the event stream and wait for its first event."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
        async with self._http.get("/global/event", timeout=timeout) as answer:
            await answer.content.readline()
            yield answer.content

    async def turns(self, prompt: str, count: int) -> float:
        """Run so many turns at once, with one event stream for all; return the milliseconds."""
        watch = Stopwatch()
        running: set[str] = set()
        async with self.events() as events:
            starts = asyncio.gather(*(self.prompt(prompt) for _ in range(count)))
            idle: set[str] = set()
            reads: list[asyncio.Task[None]] = []
            async for line in events:
                if b'"session.idle"' not in line:
                    continue
                event = json.loads(line[5:])
                session_id = event["payload"]["properties"]["sessionID"]
                if session_id not in idle:
                    idle.add(session_id)
                    reads.append(asyncio.create_task(self.read(session_id)))
                if starts.done():
                    running = running or set(starts.result())
                    if running <= idle:
                        break
            await asyncio.gather(starts, *reads)
        return watch.ms

    async def end(self, session_id: str) -> float:
        """Do the requests and the pause of the end procedure; return the milliseconds."""
        watch = Stopwatch()
        await self._look(session_id)
        await self._call("POST", f"/session/{session_id}/abort")
        await asyncio.sleep(_PAUSE_S)
        await self._look(session_id)
        await self._call("GET", f"/session/{session_id}/children")
        await self._call("GET", f"/session/{session_id}")
        await self._call("DELETE", f"/session/{session_id}")
        await self._call("GET", f"/session/{session_id}")
        await self._call("GET", "/session/status", params=self._query)
        return watch.ms

    async def begin(self, prompt: str, count: int) -> list[tuple[str, str]]:
        """Begin so many turns; return their sessions' ids with those of their prompts."""
        return await asyncio.gather(*(self._begin(prompt) for _ in range(count)))

    async def _begin(self, prompt: str) -> tuple[str, str]:
        session_id = await self.create()
        message_id = f"msg_{session_id.removeprefix('ses_')}"
        body = {"messageID": message_id, "parts": [{"type": "text", "text": prompt}]}
        await self._call("POST", f"/session/{session_id}/prompt_async", json=body)
        return session_id, message_id

    async def streaming(self, ids: list[str]) -> None:
        """Wait until all these sessions are busy."""

        async def all_busy() -> bool:
            return set(ids) <= set(await self._call("GET", "/session/status", params=self._query))

        await eventually(all_busy, what="all are busy")

    async def end_streaming(self, session_id: str, message_id: str) -> None:
        """Do the requests and the pauses of an end whose session streams (docs/ending.md)."""
        path = f"/session/{session_id}"
        await self._call("GET", f"{path}/message/{message_id}")
        await self._look(session_id)
        await self._call("POST", f"{path}/abort")
        await self._asks()
        for _ in range(2):
            await asyncio.sleep(_PAUSE_S)
            await self._look(session_id)
        await self._call("GET", f"{path}/message", params={"limit": "20"})
        await self._call("GET", f"{path}/children")
        await self._call("GET", path)
        await self._call("DELETE", path)
        await self._call("GET", path)
        await self._call("GET", "/session/status", params=self._query)

    async def _asks(self) -> None:
        await asyncio.gather(
            self._call("GET", "/permission", params=self._query),
            self._call("GET", "/question", params=self._query),
        )

    async def _look(self, session_id: str) -> None:
        await asyncio.gather(
            self._call("GET", f"/session/{session_id}/children"),
            self._call("GET", "/session/status", params=self._query),
            self._call("GET", "/permission", params=self._query),
            self._call("GET", "/question", params=self._query),
        )

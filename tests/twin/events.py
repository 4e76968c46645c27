"""The event streams: who listens, and what each frame looks like (facts 3.1-3.4)."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

from tests.twin.shapes import Json, compact, new_id

if TYPE_CHECKING:
    from aiohttp import web

#: changes that are stored come a second time, as "sync" (facts 3.2)
_STORED = frozenset(
    {
        "session.created",
        "session.updated",
        "session.deleted",
        "message.updated",
        "message.part.updated",
    }
)


class Stream:
    """One listener; `directory` is None for the stream of all folders."""

    def __init__(self, directory: str | None) -> None:
        self.directory = directory
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue()

    def send(self, event: Json) -> None:
        """Hand it a frame."""
        self._frames.put_nowait(f"data: {compact(event)}\n\n".encode())

    def end(self) -> None:
        """Let it come to its end in order: a clean EOF (facts 3.4)."""
        self._frames.put_nowait(None)

    async def pump(self, response: web.StreamResponse, heartbeat_s: float) -> None:
        """Write what comes, and a heartbeat now and then, until the stream ends."""
        while True:
            try:
                async with asyncio.timeout(heartbeat_s):
                    frame = await self._frames.get()
            except TimeoutError:
                self.greet("server.heartbeat")
                continue
            if frame is None:
                return
            await response.write(frame)

    def greet(self, kind: str) -> None:
        """Say something that is about no folder."""
        payload = {"id": new_id("evt"), "type": kind, "properties": {}}
        self.send(payload if self.directory else {"payload": payload})


class Bus:
    """Everybody who listens. Nothing is kept and nothing is replayed (facts 3.1)."""

    def __init__(self) -> None:
        self.streams: set[Stream] = set()
        self._sequence = itertools.count()

    def publish(self, directory: str, kind: str, /, **properties: object) -> None:
        """Tell all streams that this folder concerns."""
        payload = {"id": new_id("evt"), "type": kind, "properties": properties}
        whole = {"directory": directory, "project": "global", "payload": payload}
        for stream in self.streams:
            if stream.directory is None:
                stream.send(whole)
                if kind in _STORED:
                    stream.send({**whole, "payload": self._copy(payload)})
            elif stream.directory == directory:
                stream.send(payload)

    def end_folder(self, directory: str | None) -> None:
        """End the streams of one folder, or of every folder; the global ones go on (facts 3.4)."""
        for stream in self.streams:
            if stream.directory is not None and directory in {None, stream.directory}:
                stream.end()

    def end_all(self) -> None:
        """End every stream."""
        for stream in self.streams:
            stream.end()

    def _copy(self, payload: Json) -> Json:
        properties = payload["properties"]
        return {
            "type": "sync",
            "syncEvent": {
                "id": payload["id"],
                "type": f"{payload['type']}.1",
                "seq": next(self._sequence),
                "aggregateID": properties["sessionID"],
                "data": properties,
            },
        }

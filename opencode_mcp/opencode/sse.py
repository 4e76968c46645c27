"""OpenCode's event stream, from bytes to events. Pure: no I/O, no time, no memory of sessions.

Two steps, so that what nobody waits for costs next to nothing: `SseParser` cuts the stream into
frames, and `read_event` tells from a frame's first bytes what it is about; the rest of its JSON
is read only when somebody asks. A streamed token is a frame of its own, and every stored change
comes a second time as "sync" (facts 3.2, 3.7).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic_core import from_json

#: more than any event that was seen; what is larger is skipped, not kept
MAX_EVENT_BYTES = 8 * 1024 * 1024

# Anchored at the frame's start and made of whole JSON strings, so that nothing inside a value
# (a title, a session's metadata) can pose as the event's kind or session. Shapes: facts 3.2, 5.1.
_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_HEAD = re.compile(
    rb'\{(?:"(?:directory|project|workspace)":' + _STRING + rb",)*"
    rb'"payload":\{(?:"id":"[^"\\]*",)?"type":"([^"\\]+)"'
    rb'(?:,"properties":\{(?:"id":"[^"\\]*",)?"sessionID":"([^"\\]+)")?'
)


class SseParser:
    """Cuts a stream, in chunks of any size, into the data of its events.

    Only `data` is read: OpenCode sends no ids, names or retry times (facts 3.1).
    """

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        """`max_bytes`: an event with more is skipped and counted; no more of it is kept."""
        #: how many events were too large
        self.skipped_count = 0
        self._max_bytes = max_bytes
        self._line: list[bytes] = []  # pieces of the line that has not ended yet
        self._line_bytes = 0
        self._data: list[bytes] = []  # data of the event that has not ended yet
        self._data_bytes = 0
        self._is_oversize = False
        self._after_cr = False  # a CR ended the last chunk: an LF that follows belongs to it

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes and return the data of every event that they complete."""
        frames: list[bytes] = []
        *ended, rest = self._with_plain_newlines(chunk).split(b"\n")
        for piece in ended:
            self._keep(piece)
            self._end_line(frames)
        self._keep(rest)
        return frames

    def _with_plain_newlines(self, chunk: bytes) -> bytes:
        """Turn CRLF and CR, which SSE allows too, into LF."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk

    def _keep(self, piece: bytes) -> None:
        self._line_bytes += len(piece)
        if self._line_bytes + self._data_bytes > self._max_bytes:
            self._is_oversize = True
        elif piece and not self._is_oversize:
            self._line.append(piece)

    def _end_line(self, frames: list[bytes]) -> None:
        if self._line_bytes == 0:
            self._end_event(frames)
        elif not self._is_oversize:
            line = b"".join(self._line)
            if line.startswith(b"data:"):
                data = line[5:].removeprefix(b" ")
                self._data.append(data)
                self._data_bytes += len(data)
        self._line.clear()
        self._line_bytes = 0

    def _end_event(self, frames: list[bytes]) -> None:
        if self._is_oversize:
            self.skipped_count += 1
            self._is_oversize = False
        elif self._data:
            frames.append(b"\n".join(self._data))
        self._data.clear()
        self._data_bytes = 0


@dataclass  # not frozen: one is made for each streamed token, and that costs a third of it
class Event:
    """One event of the global stream; `kind` is OpenCode's `type`, kept as text."""

    kind: str
    #: the session it is about, if it is about one
    session_id: str | None
    #: the whole event, as JSON
    frame: bytes

    @cached_property
    def properties(self) -> dict[str, Any]:
        """What the event says; empty where it cannot be read."""
        found = _payload(self.frame).get("properties")
        return found if isinstance(found, dict) else {}

    def part(self, name: str) -> dict[str, Any]:
        """Return one object of the properties; empty where there is none."""
        found = self.properties.get(name)
        return found if isinstance(found, dict) else {}


def read_event(frame: bytes) -> Event | None:
    """Tell what a frame is about, from its beginning where that suffices; None: unreadable."""
    if head := _HEAD.match(frame):
        kind, session_id = head.groups()
        if session_id is not None:
            return Event(_text(kind), _text(session_id), frame)
        if kind == b"sync":  # a copy: not worth its JSON
            return Event("sync", None, frame)
    payload = _payload(frame)
    found = payload.get("type")
    if not isinstance(found, str):
        return None
    event = Event(found, None, frame)
    for holder in (event.properties, event.part("info"), event.part("part")):
        if isinstance(named := holder.get("sessionID"), str):
            return Event(found, named, frame)
    return event


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _payload(frame: bytes) -> dict[str, Any]:
    try:
        whole = from_json(frame)
    except ValueError:
        return {}
    payload = whole.get("payload") if isinstance(whole, dict) else None
    return payload if isinstance(payload, dict) else {}

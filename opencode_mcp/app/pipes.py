"""stdin and stdout for the MCP library, with stdin's end held back until all is answered.

At the end of its input FastMCP cancels every call under way, also one that came right before it.
So it gets an input of ours, which ends once every request has its answer, or the time is up; on a
signal in the same way, which also frees the thread that reads. The library serves whatever
`sys.stdin` and `sys.stdout` are, in threads, if they have no descriptor of their own.
"""

from __future__ import annotations

import io
import os
import select
import time
from typing import TYPE_CHECKING

from mcp_types import JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from opencode_mcp.engine.closing import WRITTEN_BY_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_types import JSONRPCMessage
    from typing_extensions import Buffer

_CHUNK = 65_536


class Pipes:
    """Both streams, and which requests between them have no answer yet.

    `source` and `sink` are descriptors. Called in the thread that reads: `on_start` when it begins,
    `on_end` when the source has ended.
    """

    def __init__(
        self,
        source: int,
        sink: int,
        *,
        on_end: Callable[[], None],
        on_start: Callable[[], None] = lambda: None,
    ) -> None:
        self.stdin = io.TextIOWrapper(io.BufferedReader(_Input(self)), encoding="utf-8")
        self.stdout = io.TextIOWrapper(io.BufferedWriter(_Output(self)), encoding="utf-8")
        self._source = source
        self._sink = sink
        self._on_start: Callable[[], None] | None = on_start
        self._on_end = on_end
        self._has_ended = False
        #: nothing at all has come from the client
        self.is_unused = True
        self._half_a_line = b""
        self._half_an_answer = b""
        # Both are changed by one thread each, a key at a time; whoever reads looks again.
        self._unanswered: dict[str, None] = {}
        self._until: float | None = None
        # a byte in it makes the reading thread look again
        self._woken, self._waker = os.pipe()

    def end(self) -> None:
        """Let the input end: once all is answered, at the latest after `WRITTEN_BY_S`."""
        if self._until is None:
            self._until = time.monotonic() + WRITTEN_BY_S
        os.write(self._waker, b".")

    def read(self) -> bytes:
        """Return the next bytes of the input as they come; b"": it ends here."""
        if self._on_start is not None:
            self._on_start()
            self._on_start = None
        while (left_s := self._left_s()) is None or left_s >= 0:
            sources = [self._woken] if self._has_ended else [self._woken, self._source]
            ready, _, _ = select.select(sources, [], [], left_s)
            if self._woken in ready:
                os.read(self._woken, _CHUNK)
            elif self._source in ready:
                data = self._take(os.read(self._source, _CHUNK))
                if data:
                    return data
            elif left_s == 0:
                break
        return b""

    def write(self, data: bytes) -> int:
        """Write some of `data`, note the answers in it, and return how many bytes they were."""
        try:
            count = os.write(self._sink, data)
        except BrokenPipeError:  # the client is gone: nobody waits for an answer
            self._unanswered.clear()
            self.end()
            return len(data)
        *lines, self._half_an_answer = (self._half_an_answer + data[:count]).split(b"\n")
        for line in lines:
            message = _parse(line)
            if not isinstance(message, JSONRPCRequest | JSONRPCNotification | None):
                self._unanswered.pop(str(message.id), None)
        if self._until is not None:
            os.write(self._waker, b".")
        return count

    def _left_s(self) -> float | None:
        """Return how long to wait for more input; None: as it takes, negative: no more."""
        if self._until is None:
            return None
        left_s = self._until - time.monotonic()
        return left_s if self._unanswered or left_s < 0 else 0.0

    def _take(self, data: bytes) -> bytes:
        """Note the requests in what was read."""
        self.is_unused = self.is_unused and not data
        if not data:
            self._has_ended = True
            self._on_end()
            self.end()
            data = b"\n" if self._half_a_line else b""  # a last line without its end
        *lines, self._half_a_line = (self._half_a_line + data).split(b"\n")
        for line in lines:
            message = _parse(line)
            if isinstance(message, JSONRPCRequest):
                self._unanswered[str(message.id)] = None
            elif isinstance(message, JSONRPCNotification):
                self._forget_cancelled(message)
        return data

    def _forget_cancelled(self, message: JSONRPCNotification) -> None:
        """Expect no answer to a cancelled request."""
        if message.method == "notifications/cancelled" and message.params:
            self._unanswered.pop(str(message.params.get("requestId")), None)


def _parse(line: bytes) -> JSONRPCMessage | None:
    """Return the message as the library takes it; None: it passes it over."""
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return None


class _Input(io.RawIOBase):
    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        data = self._rest or self._pipes.read()
        view = memoryview(buffer).cast("B")
        count = min(len(view), len(data))
        view[:count] = data[:count]
        self._rest = data[count:]
        return count


class _Output(io.RawIOBase):
    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        return self._pipes.write(bytes(data))

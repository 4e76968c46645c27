"""One event subscription per OpenCode, shared by everybody who waits for a session.

Events only wake: what a session is doing is read from OpenCode afterwards. So nothing here has to
be complete or in order; it has to wake whoever may have missed something. A stream that breaks,
ends, falls silent or skips an event is a gap, and a gap wakes everybody (facts 3.1).
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from opencode_mcp.clock import Clock
from opencode_mcp.log_events import only_concerning, tell_failure
from opencode_mcp.opencode.sse import SseParser, read_event
from opencode_mcp.opencode.stream_loss import StreamLoss
from opencode_mcp.opencode.watch import Watch
from opencode_mcp.opencode_errors import OpencodeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from opencode_mcp.opencode.client import OpencodeClient
    from opencode_mcp.opencode.sse import Event

log = logging.getLogger(__name__)

#: `server.connected` comes at once (facts 3.1); a stream that opens and says nothing is dead
_FIRST_EVENT_S = 10.0
#: so many heartbeats may be late before the stream counts as dead
_SILENCE_HEARTBEATS = 2.5
_RECONNECT_FIRST_S = 0.25
_RECONNECT_MAX_S = 5.0

#: OpenCode dropped every run of a folder, or of all (facts 9.5)
_DISPOSED = frozenset({"server.instance.disposed", "global.disposed"})

#: of each kind, oldest forgotten first; a forgotten child no longer wakes its root
_MAX_REMEMBERED = 10_000
#: generations; sub-agents of sub-agents were not even seen (facts 13), and a loop must end
_MAX_DEPTH = 16


class EventHub:
    """An async context manager: follows the stream from the first watch on, until it is left."""

    def __init__(
        self,
        client: OpencodeClient,
        *,
        clock: Clock = Clock(),  # noqa: B008 - stateless, and never changed
        heartbeat_s: float = 10.0,
    ) -> None:
        """`heartbeat_s`: how often OpenCode says that it is alive; measured (facts 3.1)."""
        #: the stream is up and has spoken: what happens from now on will be heard
        self.spoken = False
        #: grows with each gap and each disposal: what OpenCode had in memory may be gone
        self.generation = 0
        self._client = client
        self._clock = clock
        self._silence_s = _SILENCE_HEARTBEATS * heartbeat_s
        self._wanted = asyncio.Event()
        self._watches: dict[str, list[Watch]] = {}
        self._parents: dict[str, str] = {}  # child -> parent, of every session heard of
        self._loss = StreamLoss(client.base_url, clock)
        self._deleted: dict[str, None] = {}  # in the order in which it was heard
        self._reader: asyncio.Task[None] | None = None

    def heard_deleted(self, session_id: str) -> bool:
        """Whether this OpenCode said that it deleted the session; False: not heard, at least."""
        return session_id in self._deleted

    async def __aenter__(self) -> Self:
        with only_concerning():  # whichever call connects first, the stream is not for it
            name = f"events {self._client.base_url}"
            self._reader = asyncio.create_task(self._follow(), name=name)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait({self._reader})
        self._mark_gap()

    @contextmanager
    def watch(self, session_id: str) -> Iterator[Watch]:
        """Watch a session while the block runs; several may watch the same one."""
        watch = Watch(session_id, self._clock)
        self._watches.setdefault(session_id, []).append(watch)
        self._wanted.set()
        try:
            yield watch
        finally:
            watches = self._watches[session_id]
            watches.remove(watch)
            if not watches:
                del self._watches[session_id]

    async def _follow(self) -> None:
        """Read the stream, again and again."""
        await self._wanted.wait()
        failures = 0
        while True:
            try:
                await self._read_stream()
                reason = "it ended"
            except OpencodeError as error:
                reason = str(error)
            except TimeoutError:
                reason = "it is silent"
            except Exception as error:  # noqa: BLE001 - top of a task: it must go on
                tell_failure(log, error, where="an event stream", url=self._client.base_url)
                reason = "see above"
            failures = 0 if self.spoken else failures + 1
            self._loss.lost(reason, was_up=self.spoken)
            self._mark_gap()
            await self._clock.sleep(_pause_s(failures))

    async def _read_stream(self) -> None:
        loop = asyncio.get_running_loop()
        parser = SseParser()
        skipped = 0
        # The timer is outside the stream, so that its end closes the connection first.
        async with (
            asyncio.timeout(min(_FIRST_EVENT_S, self._silence_s)) as watchdog,
            self._client.stream_events(silence_s=self._silence_s) as chunks,
        ):
            async for chunk in chunks:
                frames = parser.feed(chunk)
                if frames:  # whole events count; bytes that never become one do not
                    watchdog.reschedule(loop.time() + self._silence_s)
                    self._mark_up()
                for frame in frames:
                    self._take(frame)
                if parser.skipped_count != skipped:
                    skipped = parser.skipped_count
                    self._wake_all()

    def _take(self, frame: bytes) -> None:
        event = read_event(frame)
        if event is None or event.kind in _DISPOSED:
            self.generation += 1
            self._wake_all()
            return
        session_id = event.session_id
        if session_id is None:
            return
        if event.kind in {"session.created", "session.updated"}:
            self._learn_parent(session_id, event)
        for watch in self._watches_of(session_id):
            watch.take(session_id, event)
        if event.kind == "session.deleted":
            self._parents.pop(session_id, None)
            self._deleted[session_id] = None
            if len(self._deleted) > _MAX_REMEMBERED:
                del self._deleted[next(iter(self._deleted))]

    def _learn_parent(self, session_id: str, event: Event) -> None:
        """Remember whose child a session is, watched or not: its root may be watched later."""
        if session_id in self._parents or b'"parentID":"' not in event.frame:
            return
        parent = event.part("info").get("parentID")
        if isinstance(parent, str):
            self._parents[session_id] = parent
            if len(self._parents) > _MAX_REMEMBERED:
                del self._parents[next(iter(self._parents))]

    def _watches_of(self, session_id: str) -> Iterator[Watch]:
        """Give the watches of a session and of all its ancestors."""
        found: str | None = session_id
        for _ in range(_MAX_DEPTH):
            if found is None:
                return
            yield from self._watches.get(found, ())
            found = self._parents.get(found)

    def _mark_up(self) -> None:
        if not self.spoken:
            self.spoken = True
            self._wake_all()
            self._loss.back()

    def _mark_gap(self) -> None:
        if self.spoken:
            self.spoken = False
            self.generation += 1
            self._wake_all()
            for watches in self._watches.values():
                for watch in watches:
                    watch.forget_activity()

    def _wake_all(self) -> None:
        for watches in self._watches.values():
            for watch in watches:
                watch.wake()


def _pause_s(failures: int) -> float:
    """How long to wait before connecting again; spread, so that many clients do not march."""
    longest = min(_RECONNECT_FIRST_S * 2.0 ** min(failures, 10), _RECONNECT_MAX_S)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret depends on it

"""What the events of one session say to whoever waits for it: wake up, and what it is doing.

Nothing here decides anything: what a turn came to is read. What it is doing is for people to look
at while it runs, and may be a little wrong after a gap in the stream.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opencode_mcp.opencode.tool_words import about_call

if TYPE_CHECKING:
    from opencode_mcp.clock import Clock
    from opencode_mcp.opencode.sse import Event

#: kinds that may have changed what a session is doing; a finished message is followed by an idle
_WAKING = frozenset({"session.idle", "session.status", "session.error", "session.deleted"})
_WAKING_FAMILIES = ("permission.", "question.")
_MAX_FAULT_CHARS = 500


@dataclass(frozen=True, slots=True)
class Running:
    """A tool call that is running."""

    tool: str
    #: what it works on, in one line; may be empty
    about: str
    #: on the monotonic clock, seconds
    since: float
    #: a sub-agent called it
    is_child: bool


class Watch:
    """One waiter's view of a session and its descendants; made by `EventHub.watch`."""

    def __init__(self, session_id: str, clock: Clock) -> None:
        #: the session was busy since the watch began
        self.was_busy = False
        #: what the session's newest `session.error` said; for a wrong model the only report
        #: (facts 2.4)
        self.fault: str | None = None
        #: characters of the text that is being written now; None: it writes none
        self.text_chars: int | None = None
        #: tool calls of the session itself that began since the watch did
        self.call_count = 0
        self._session_id = session_id
        self._clock = clock
        self._news = asyncio.Event()
        #: when it last was heard to do something else than think
        self._quiet_since = clock.monotonic()
        # running tool calls, oldest first, by session and call
        self._running: dict[tuple[str, str], Running] = {}
        # the part that thoughts are written to: its text is no answer
        self._thoughts: str | None = None

    @property
    def running(self) -> list[Running]:
        """The tool calls that are running, oldest first; sub-agents' too."""
        return list(self._running.values())

    @property
    def quiet_s(self) -> float:
        """Seconds since a tool ended, or a text: for so long the model has been thinking."""
        return self._clock.monotonic() - self._quiet_since

    def ran_s(self, call: Running) -> float:
        """Return for how many seconds a call has been running."""
        return self._clock.monotonic() - call.since

    async def wait(self, timeout_s: float) -> bool:
        """Wait until something happened since the last wait; False: nothing in `timeout_s`.

        Many events are one wake. True means "read again", never "it is done".
        """
        if not self._news.is_set():
            try:
                async with asyncio.timeout(timeout_s):
                    await self._news.wait()
            except TimeoutError:
                return False
        self._news.clear()
        return True

    def wake(self) -> None:
        """Make the next wait, or the one under way, return True."""
        self._news.set()

    def forget_activity(self) -> None:
        """Forget what is being done: its end may have been missed."""
        self._running.clear()
        self._no_text()

    def take(self, session_id: str, event: Event) -> None:
        """Note an event of this session or of a descendant."""
        is_own = session_id == self._session_id
        match event.kind:
            case "message.part.delta":
                if is_own:
                    self._note_delta(event)
            case "message.part.updated":
                self._note_part(session_id, event)
            case "message.updated":
                if "error" in event.part("info"):
                    self.wake()
            case "session.status" if event.part("status").get("type") == "busy":
                # begins a turn that its watcher knows of: nothing to read yet
                self.was_busy |= is_own
            case kind if kind in _WAKING or kind.startswith(_WAKING_FAMILIES):
                if kind == "session.error" and is_own:
                    self._note_fault(event)
                if kind == "session.idle":
                    self._note_idle(session_id)
                self.wake()

    def _note_fault(self, event: Event) -> None:
        """Keep the first line: a stack trace may follow it (facts 2.4)."""
        data = event.part("error").get("data")
        said = data.get("message") if isinstance(data, dict) else None
        if isinstance(said, str) and said.strip():
            self.fault = said.strip().splitlines()[0][:_MAX_FAULT_CHARS]

    def _note_idle(self, session_id: str) -> None:
        self._running = {key: call for key, call in self._running.items() if key[0] != session_id}
        if session_id == self._session_id:
            self._no_text()

    def _note_delta(self, event: Event) -> None:
        """Count what is written; thoughts come the same way, in a part of their own."""
        if event.properties.get("partID") != self._thoughts or self._thoughts is None:
            self.text_chars = (self.text_chars or 0) + len(str(event.properties.get("delta", "")))

    def _note_part(self, session_id: str, event: Event) -> None:
        part = event.part("part")
        kind = part.get("type")
        if kind == "tool":
            self._note_tool(session_id, part)
        elif session_id == self._session_id:
            time = part.get("time")
            has_ended = isinstance(time, dict) and "end" in time
            if kind == "reasoning":
                self._thoughts = None if has_ended else str(part.get("id"))
            elif kind == "text" and has_ended:
                self._no_text()

    def _no_text(self) -> None:
        self.text_chars = None
        self._quiet_since = self._clock.monotonic()

    def _note_tool(self, session_id: str, part: dict[str, object]) -> None:
        state = part.get("state")
        if not isinstance(state, dict):
            return
        key = (session_id, str(part.get("callID")))
        status = str(state.get("status"))
        now = self._clock.monotonic()
        if status not in {"pending", "running"}:
            self._running.pop(key, None)
            self._quiet_since = now
            return
        known = self._running.get(key)
        since = known.since if known is not None and known.about else now
        tool = str(part.get("tool"))
        is_child = session_id != self._session_id
        if known is None and not is_child:
            self.call_count += 1
        self._running[key] = Running(tool, about_call(tool, state), since, is_child)

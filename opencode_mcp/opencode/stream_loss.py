"""What is told of an event stream that is lost, until it is back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from opencode_mcp.log_events import Event, tell
from opencode_mcp.metrics import event_stream_lost

if TYPE_CHECKING:
    from opencode_mcp.clock import Clock

log = logging.getLogger(__name__)


class StreamLoss:
    """Whether and since when the stream of one OpenCode is lost; tells the log and the metrics."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        #: on the monotonic clock; None: it is not lost
        self._since: float | None = None

    def lost(self, why: str, *, was_up: bool) -> None:
        """Tell that there is no stream now: the first time so that somebody looks."""
        if was_up:
            event_stream_lost()
        known = self._since is not None
        if self._since is None:
            self._since = self._clock.monotonic()
        event = Event.EVENTS_STILL_LOST if known else Event.EVENTS_LOST
        tell(log, event, url=self._url, why=why)

    def back(self) -> None:
        """Tell that the stream is up, if it was lost before."""
        if self._since is not None:
            elapsed_ms = round((self._clock.monotonic() - self._since) * 1000)
            tell(log, Event.EVENTS_BACK, url=self._url, elapsed_ms=elapsed_ms)
            self._since = None

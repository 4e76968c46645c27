"""How a serving process exits: asked by a signal or by its transport, and in time in any case."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from opencode_mcp.clock import Clock
from opencode_mcp.engine.closing import GONE_BY_S, Closing
from opencode_mcp.log_events import Event, tell

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Exit:
    """The exit of this process; takes the signals. `on_begin` is called once, in the loop."""

    def __init__(self, on_begin: Callable[[], None] = lambda: None) -> None:
        self.closing = Closing(Clock())
        self._on_begin = on_begin
        self._loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            self._loop.add_signal_handler(number, self._stop, number)

    def begin(self, *, refuse: bool) -> None:
        """Begin to exit; with `refuse`, take no new call."""
        is_first = not self.closing.is_begun
        if is_first:
            # A thread of its own: whatever hangs then, the process goes.
            guard = threading.Timer(GONE_BY_S, go)
            guard.daemon = True
            guard.start()
        self.closing.begin(refuse=refuse)
        if is_first:
            self._on_begin()

    def _stop(self, number: signal.Signals) -> None:
        tell(log, Event.SERVER_STOPPING, why=number.name)
        for each in _SIGNALS:  # a second one ends at once, even if nothing else moves any more
            self._loop.remove_signal_handler(each)
            signal.signal(each, _end_at_once)
        self.begin(refuse=True)


def go() -> None:
    """End this process now, with 0: all that must not be lost is written down."""
    with suppress(OSError):  # nobody reads it any more
        sys.stderr.flush()
    os._exit(0)


def _end_at_once(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)

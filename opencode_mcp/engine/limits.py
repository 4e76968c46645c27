"""The operator's bounds that the engine keeps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opencode_mcp.records import Capacity, EndAction, ExitAction


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The operator's bounds that the engine keeps. Times in seconds."""

    capacity: Capacity
    cleanup_timeout_s: float
    #: how long an ask may wait before it is rejected
    approval_timeout_s: float
    default_end_action: EndAction
    #: sessions that nobody used for so long are ended; 0: never
    session_idle_ttl_s: float
    #: whether a call that owns a turn stops it when its client cancels the call
    abort_on_call_cancel: bool
    #: what becomes of the turns of this process when it exits
    on_exit: ExitAction
    #: so many answers without progress in a row stop a turn; 0: never
    response_loop_limit: int

    @property
    def idle_ttl(self) -> timedelta | None:
        """After how long without use a session is ended; None: never."""
        return timedelta(seconds=self.session_idle_ttl_s) if self.session_idle_ttl_s else None

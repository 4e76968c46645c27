"""An outage, as one turn meets it: OpenCode, or the database, cannot be asked about it now."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from opencode_mcp.engine.telling import ids_of
from opencode_mcp.log_events import Event, tell

if TYPE_CHECKING:
    from datetime import datetime

    from opencode_mcp.clock import Clock
    from opencode_mcp.records import Session, Turn

log = logging.getLogger(__name__)

#: how long to wait while OpenCode cannot be asked; an event wakes earlier
TROUBLE_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Trouble:
    """OpenCode cannot be asked about the turn now."""

    error: Exception
    since: datetime
    next_at: datetime

    @property
    def reason(self) -> str:
        """What went wrong, in words."""
        return str(self.error) or "OpenCode did not answer in time"


def met_again(
    before: Trouble | None, error: Exception, clock: Clock, session: Session, turn: Turn
) -> Trouble:
    """Return the trouble of a turn that could not be read just now; the log hears of the first."""
    now = clock.now()
    since = before.since if before else now
    trouble = Trouble(error, since, now + timedelta(seconds=TROUBLE_PAUSE_S))
    if before is None:
        tell(log, Event.OUTAGE_BEGAN, **ids_of(session, turn), why=trouble.reason)
    return trouble


def passed(before: Trouble | None, clock: Clock, session: Session, turn: Turn) -> None:
    """Tell the log that a turn can be read again, if it could not."""
    if before is not None:
        elapsed_ms = round((clock.now() - before.since).total_seconds() * 1000)
        tell(log, Event.OUTAGE_OVER, **ids_of(session, turn), elapsed_ms=elapsed_ms)

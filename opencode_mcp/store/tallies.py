"""How much is tracked, for whoever watches this program (`metrics.py`)."""

from __future__ import annotations

from opencode_mcp.records import Tally
from opencode_mcp.store.connection import Part
from opencode_mcp.store.rows import to_moment, to_text

# One statement, so that the numbers fit together. All of it is answered by indices: it must be
# cheap with 100,000 sessions, since it is asked every few seconds.
_TALLY = """
    SELECT
        (SELECT count(*) FROM sessions) AS sessions,
        (SELECT count(*) FROM sessions WHERE phase = 'quarantined') AS quarantined,
        (SELECT count(*) FROM sessions WHERE phase = 'ending') AS ending,
        (SELECT min(end_since) FROM sessions WHERE phase = 'ending') AS ending_since,
        (SELECT count(*) FROM turns WHERE finished_at IS NULL) AS open_turns,
        (SELECT count(*) FROM turns WHERE finished_at IS NULL AND deadline_at < :now)
            AS overdue_turns,
        (SELECT count(*) FROM starts) AS starts
"""


class Tallies(Part):
    """Counts over all tables."""

    async def tally(self) -> Tally:
        """Return how many there are of what is tracked, now."""
        now = self._clock.now()
        (row,) = await self._database.rows(_TALLY, {"now": to_text(now)})
        since = to_moment(row["ending_since"]) if row["ending_since"] else now
        return Tally(
            active=row["sessions"] - row["quarantined"] - row["ending"],
            quarantined=row["quarantined"],
            ending=row["ending"],
            ending_for_s=max(0.0, (now - since).total_seconds()),
            open_turns=row["open_turns"],
            overdue_turns=row["overdue_turns"],
            starts=row["starts"],
        )

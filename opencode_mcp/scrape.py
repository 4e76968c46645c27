"""What a Prometheus server gets: what was counted (`metrics.py`), and what is read as it asks.

Read from the database at each scrape is what *is*: sessions, unfinished work, of all processes on
it. It is one cheap query. OpenCode is never asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily

from opencode_mcp.errors import StoreError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.metrics import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client import Metric

    from opencode_mcp.records import Tally

#: the text format that every scraper reads; the newer ones differ in names that we do not have
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Tallying(Protocol):
    """What the scrape reads: the store."""

    async def tally(self) -> Tally:
        """Return how many there are of what is tracked. Raises StoreError."""


async def exposition(store: Tallying) -> tuple[bytes, str]:
    """Return what a scrape gets, and its content type.

    A database that cannot be read is a metric of its own, and takes away no other.
    """
    try:
        tally = await store.tally()
    except StoreError:
        tally = None
    state = CollectorRegistry()
    state.register(_State(tally))
    return generate_latest(REGISTRY) + generate_latest(state), CONTENT_TYPE


class _State:
    """A collector of what was read for one scrape."""

    def __init__(self, tally: Tally | None) -> None:
        self._tally = tally

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges; without a tally that of the database alone."""
        tally = self._tally
        yield _gauge(
            "database_up", "Whether the tracking database could be read.", tally is not None
        )
        if tally is None:
            return
        phases = {
            Phase.ACTIVE.value: tally.active,
            Phase.QUARANTINED.value: tally.quarantined,
            Phase.ENDING.value: tally.ending,
        }
        yield _gauges("sessions", "Tracked sessions.", "phase", phases)
        backlog = {"end": tally.ending, "turn": tally.open_turns, "start": tally.starts}
        words = "What was begun and is not seen to be over; the finisher sees to it."
        yield _gauges("finisher_backlog", words, "intent", backlog)
        words = "Turns that are not seen to be over although their time limit is past."
        yield _gauge("turns_overdue", words, tally.overdue_turns)
        words = "How long the oldest end that is not confirmed has been accepted; 0: there is none."
        yield _gauge("end_oldest_age_seconds", words, tally.ending_for_s)


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"opencode_mcp_{name}", words, value=value)


def _gauges(name: str, words: str, label: str, values: Mapping[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"opencode_mcp_{name}", words, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family

"""What a Prometheus server scrapes: everything that is counted, and what is read when it asks.

Counted by this process since its start: what happened. Read from the database at each scrape: what
is (sessions, unfinished work), of all processes on it. OpenCode is never asked for a scrape.

The metrics are this module's, in a registry of its own, and not an object that is passed down: like
a log line, a count belongs to the process and has nothing to decide, so every floor may count
without being handed something to count with. A test compares two scrapes. What is *read* is passed
in. The registry is not prometheus_client's default one, where any library may put what it likes.

A label has few values, all known beforehand and all there from the start, at 0. None is an id, a
name, a folder, a model or an address; what is not in the list counts as "other".

Imported late: prometheus_client takes 30 ms, and over stdio nobody scrapes.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily

from opencode_mcp import __version__
from opencode_mcp.clock import Clock
from opencode_mcp.errors import OpencodeMcpError, StoreError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.records import AnsweredBy, AskKind, EndAction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prometheus_client import Metric

    from opencode_mcp.records import Tally


def _names(kind: type[OpencodeMcpError]) -> Iterator[str]:
    yield kind.name
    for below in kind.__subclasses__():
        yield from _names(below)


# when each series began is of no use to Prometheus, and doubles what is sent
disable_created_metrics()  # type: ignore[no-untyped-call] # it takes and gives nothing

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

#: the text format that every scraper reads; the newer ones differ in names that we do not have
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
OK = "ok"
#: results of a tool call that is no result at all
CANCELLED, INPUT_REQUIRED = "cancelled", "input_required"

#: how a turn can end (contract §3); unknown: it was over before anybody of ours could look
OUTCOMES = ("completed", "failed", "cancelled", "timeout", "unknown")
#: why a turn can fail: `engine/failures.py`
TURN_ERRORS = (
    "EMPTY_RESPONSE",
    "TURN_INCOMPLETE",
    "UPSTREAM_ERROR",
    "UPSTREAM_RESPONSE_LOOP",
    "UPSTREAM_RESPONSE_TOO_LARGE",
)
#: why a call can fail: the errors that there are, and what a result says by itself
ERROR_NAMES = frozenset({*_names(OpencodeMcpError), *TURN_ERRORS, "CLEANUP_UNCONFIRMED"})
_CALL_RESULTS = frozenset({OK, CANCELLED, INPUT_REQUIRED, OTHER, *ERROR_NAMES})
#: how one try of a request can go; abandoned: nobody wanted its answer any more
REQUEST_RESULTS = (OK, "4xx", "5xx", "timeout", "unreachable", "unreadable", "abandoned")

_INFO = Info("opencode_mcp", "This server.", registry=REGISTRY)
_INFO.info({"version": __version__})

_TURNS = Counter(
    "opencode_mcp_turns",
    "Turns that this process brought to their end.",
    ["outcome", "error"],
    registry=REGISTRY,
)
_TURN_SECONDS = Histogram(
    "opencode_mcp_turn_duration_seconds",
    "From the submission of a turn to its end.",
    ["outcome"],
    buckets=(1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600),
    registry=REGISTRY,
)
_ENDS = Counter(
    "opencode_mcp_ends",
    "Ends that this process worked on: confirmed, or not confirmed in their time (each time).",
    ["action", "result"],
    registry=REGISTRY,
)
_END_SECONDS = Histogram(
    "opencode_mcp_end_duration_seconds",
    "From the acceptance of an end to its confirmation.",
    ["action"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 300, 3600),
    registry=REGISTRY,
)
_APPROVALS = Counter(
    "opencode_mcp_approvals",
    "Permissions and questions of OpenCode that were answered.",
    ["kind", "decision", "by"],
    registry=REGISTRY,
)
_CALLS = Counter(
    "opencode_mcp_tool_calls",
    "Calls of MCP tools that are over.",
    ["tool", "result"],
    registry=REGISTRY,
)
_CALL_SECONDS = Histogram(
    "opencode_mcp_tool_call_duration_seconds",
    "How long a call of an MCP tool took; waiting for a turn is most of it.",
    ["tool"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600),
    registry=REGISTRY,
)
_REQUESTS = Counter(
    "opencode_mcp_opencode_requests",
    "Requests to OpenCode, each try of them.",
    ["kind", "route", "result"],
    registry=REGISTRY,
)
_REQUEST_SECONDS = Histogram(
    "opencode_mcp_opencode_request_duration_seconds",
    "How long OpenCode took to answer, or we to give up; each try of a request.",
    ["kind", "route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=REGISTRY,
)
_RETRIES = Counter(
    "opencode_mcp_opencode_request_retries",
    "Requests to OpenCode that were repeated, each repetition.",
    ["kind", "route"],
    registry=REGISTRY,
)
_GAPS = Counter(
    "opencode_mcp_opencode_event_stream_losses",
    "How often an event stream of OpenCode broke, ended or fell silent.",
    registry=REGISTRY,
)


def turn_over(outcome: str, error: str, seconds: float) -> None:
    """Count a turn that is over. `error`: its `error.name` if it failed, else empty."""
    _TURNS.labels(_among(outcome, OUTCOMES), error and _among(error, TURN_ERRORS)).inc()
    _TURN_SECONDS.labels(_among(outcome, OUTCOMES)).observe(seconds)


def end_confirmed(action: EndAction, seconds: float) -> None:
    """Count a session that ended, `seconds` after its end was accepted."""
    _ENDS.labels(action.value, "ended").inc()
    _END_SECONDS.labels(action.value).observe(seconds)


def end_unconfirmed(action: EndAction) -> None:
    """Count an end that was not confirmed within its limit and is to be tried again."""
    _ENDS.labels(action.value, "unconfirmed").inc()


def approval_answered(kind: AskKind, by: AnsweredBy, *, allowed: bool) -> None:
    """Count an ask that was answered."""
    _APPROVALS.labels(kind.value, "allow" if allowed else "reject", by.value).inc()


def offer_tools(names: Iterable[str]) -> None:
    """Let there be series for calls of these tools."""
    for name, result in product(names, sorted(_CALL_RESULTS)):
        _CALLS.labels(name, result)
        _CALL_SECONDS.labels(name)


def tool_call_over(tool: str, result: str, seconds: float) -> None:
    """Count a call.

    `tool`: one of ours, or `OTHER`. `result`: its `error.name`, or `OK`, `CANCELLED`,
    `INPUT_REQUIRED`.
    """
    _CALLS.labels(tool, _among(result, _CALL_RESULTS)).inc()
    _CALL_SECONDS.labels(tool).observe(seconds)


def offer_routes(routes: Mapping[str, str]) -> None:
    """Let there be series for these routes of OpenCode; the values are the kinds of call."""
    for route, kind in routes.items():
        for result in REQUEST_RESULTS:
            _REQUESTS.labels(kind, route, result)
        _REQUEST_SECONDS.labels(kind, route)
        _RETRIES.labels(kind, route)


def request_over(kind: str, route: str, result: str, seconds: float) -> None:
    """Count one try of a request. `route`: one that was offered."""
    _REQUESTS.labels(kind, route, _among(result, REQUEST_RESULTS)).inc()
    _REQUEST_SECONDS.labels(kind, route).observe(seconds)


def request_repeated(kind: str, route: str) -> None:
    """Count that a request is made once more."""
    _RETRIES.labels(kind, route).inc()


def event_stream_lost() -> None:
    """Count an event stream that was up and is gone."""
    _GAPS.inc()


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
    state.register(_State(tally, Clock()))
    return generate_latest(REGISTRY) + generate_latest(state), CONTENT_TYPE


class _State:
    """A collector of what was read for one scrape."""

    def __init__(self, tally: Tally | None, clock: Clock) -> None:
        self._tally = tally
        self._clock = clock

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
        yield _gauge("end_oldest_age_seconds", words, self._age_s(tally))

    def _age_s(self, tally: Tally) -> float:
        if tally.ending_since is None:
            return 0.0
        return max(0.0, (self._clock.now() - tally.ending_since).total_seconds())


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"opencode_mcp_{name}", words, value=value)


def _gauges(name: str, words: str, label: str, values: Mapping[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"opencode_mcp_{name}", words, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family


def _among(value: str, known: Iterable[str]) -> str:
    return value if value in known else OTHER


def _begin() -> None:
    """Let every series be there from the start, at 0."""
    for outcome in OUTCOMES:
        for error in TURN_ERRORS if outcome == "failed" else ("",):
            _TURNS.labels(outcome, error)
        _TURN_SECONDS.labels(outcome)
    for action in EndAction:
        for result in ("ended", "unconfirmed"):
            _ENDS.labels(action.value, result)
        _END_SECONDS.labels(action.value)
    for kind, by in product(AskKind, AnsweredBy):
        _APPROVALS.labels(kind.value, "reject", by.value)
        if by in {AnsweredBy.CALLER, AnsweredBy.PERSON}:
            _APPROVALS.labels(kind.value, "allow", by.value)


_begin()

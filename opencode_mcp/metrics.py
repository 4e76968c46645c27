"""What is counted: what happened in this process since its start. `scrape.py` tells it.

The metrics are this module's, in a registry of its own, and not an object that is passed down: like
a log line, a count belongs to the process and has nothing to decide, so every floor may count
without being handed something to count with. A test compares two scrapes. The registry is not
prometheus_client's default one, where any library may put what it likes.

A label has few values, all known beforehand and all there from the start, at 0. None is an id, a
name, a folder, a model or an address; what is not in the list counts as "other".

Imported late: prometheus_client takes 30 ms, and over stdio nobody scrapes.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from opencode_mcp import __version__
from opencode_mcp.errors import OpencodeMcpError
from opencode_mcp.records import AnsweredBy, AskKind, EndAction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def _counter(name: str, words: str, *labels: str) -> Counter:
    return Counter(f"opencode_mcp_{name}", words, labels, registry=REGISTRY)


def _histogram(name: str, words: str, *labels: str, buckets: tuple[float, ...]) -> Histogram:
    return Histogram(f"opencode_mcp_{name}", words, labels, registry=REGISTRY, buckets=buckets)


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

_TURNS = _counter("turns", "Turns that this process brought to their end.", "outcome", "error")
_TURN_SECONDS = _histogram(
    "turn_duration_seconds",
    "From the submission of a turn to its end.",
    "outcome",
    buckets=(1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600),
)
_ENDS = _counter(
    "ends",
    "Ends that this process worked on: confirmed, or not confirmed in their time (each time).",
    "action",
    "result",
)
_END_SECONDS = _histogram(
    "end_duration_seconds",
    "From the acceptance of an end to its confirmation.",
    "action",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 300, 3600),
)
_APPROVALS = _counter(
    "approvals",
    "Permissions and questions of OpenCode that were answered.",
    "kind",
    "decision",
    "by",
)
_CALLS = _counter("tool_calls", "Calls of MCP tools that are over.", "tool", "result")
_CALL_SECONDS = _histogram(
    "tool_call_duration_seconds",
    "How long a call of an MCP tool took; waiting for a turn is most of it.",
    "tool",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600),
)
_REQUESTS = _counter(
    "opencode_requests", "Requests to OpenCode, each try of them.", "kind", "route", "result"
)
_REQUEST_SECONDS = _histogram(
    "opencode_request_duration_seconds",
    "How long OpenCode took to answer, or we to give up; each try of a request.",
    "kind",
    "route",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
_RETRIES = _counter(
    "opencode_request_retries",
    "Requests to OpenCode that were repeated, each repetition.",
    "kind",
    "route",
)
_GAPS = _counter(
    "opencode_event_stream_losses",
    "How often an event stream of OpenCode broke, ended or fell silent.",
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
    for name, result in product((*names, OTHER), sorted(_CALL_RESULTS)):
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
            _series_of(kind, route, result)
        _RETRIES.labels(kind, route)


def request_over(kind: str, route: str, result: str, seconds: float) -> None:
    """Count one try of a request. `route`: one that was offered."""
    counter, histogram = _series_of(kind, route, _among(result, REQUEST_RESULTS))
    counter.inc()
    histogram.observe(seconds)


@cache
def _series_of(kind: str, route: str, result: str) -> tuple[Counter, Histogram]:
    """Return the series of such a try; kept, since a short turn makes ten, and looks cost more."""
    return _REQUESTS.labels(kind, route, result), _REQUEST_SECONDS.labels(kind, route)


def request_repeated(kind: str, route: str) -> None:
    """Count that a request is made once more."""
    _RETRIES.labels(kind, route).inc()


def event_stream_lost() -> None:
    """Count an event stream that was up and is gone."""
    _GAPS.inc()


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

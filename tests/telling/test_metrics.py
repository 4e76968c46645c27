"""The numbers of a scrape are what happened, and say nothing of whom it happened to."""

from __future__ import annotations

import asyncio
import inspect
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from opencode_mcp import metrics
from opencode_mcp.app.runtime import open_runtime
from opencode_mcp.callers.tool_table import NAMES
from opencode_mcp.engine import failures
from opencode_mcp.engine.outcome import TurnStatus, Verdict
from opencode_mcp.opencode.calls import OTHER_ROUTE, ROUTES, Call, CallKind
from opencode_mcp.opencode.client import OpencodeClient, Prompt
from opencode_mcp.opencode.http import Http
from opencode_mcp.opencode_errors import OpencodeError, OpencodeProtocolError
from opencode_mcp.settings import load_settings
from tests.support.polling import eventually
from tests.telling.day import SECRET, Day, live_through
from tests.telling.scraping import Growth, Scrape, scrape
from tests.turns.reading import streaming
from tests.twin import Hang, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin

_ID = re.compile(r"(ses|msg|per|que)_[^/]+")
#: results of requests that OpenCode was seen to answer
_ANSWERED = ("ok", "4xx", "5xx", "unreadable")


async def test_a_scrape_says_what_happened(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    metrics.offer_tools(NAMES)
    before = await scrape(bridges.database)
    since = len(twin.requests)
    day = await live_through(bridge, twin, project)
    arrived = len(twin.requests)
    after = await scrape(bridges.database)
    grown = Growth(before, after)

    assert len(twin.requests) == arrived, "a scrape does not ask OpenCode"
    assert grown.by("turns_total", "outcome", "error") == {
        ("completed", ""): 5,
        ("failed", "UPSTREAM_ERROR"): 1,
        ("failed", "EMPTY_RESPONSE"): 1,
        ("cancelled", ""): 3,
        ("timeout", ""): 1,
    }
    assert grown.of("turn_duration_seconds_count", outcome="completed") == 5
    assert 1 <= grown.of("turn_duration_seconds_sum", outcome="timeout") < 60
    unconfirmed = grown.of("ends_total", result="unconfirmed")
    assert unconfirmed >= 1
    assert grown.by("ends_total", "action", "result") == {
        ("archive", "ended"): 1,
        ("delete", "ended"): 9,
        ("delete", "unconfirmed"): unconfirmed,
    }
    assert grown.of("end_duration_seconds_count") == 10
    assert grown.of("end_duration_seconds_sum") >= 4, "one took as long as an end may take"
    assert grown.by("approvals_total", "kind", "decision", "by") == {
        ("permission", "allow", "caller"): 1,
        ("permission", "reject", "caller"): 1,
        ("permission", "reject", "policy"): 1,
        ("question", "reject", "stop"): 1,
    }
    assert grown.of("opencode_event_stream_losses_total") == 1
    _check_calls(grown, day)
    _check_requests(grown, twin, since)
    _check_labels(before, after, day)


def _check_calls(grown: Growth, day: Day) -> None:
    counted = grown.by("tool_calls_total", "tool", "result")
    ends = [counted.pop(key) for key in list(counted) if key[0] == "opencode-end"]
    made = {key: count for key, count in day.calls.items() if key[0] != "opencode-end"}
    assert counted == made
    assert sum(ends) >= 11, "the last session was ended more than once"
    assert grown.of("tool_call_duration_seconds_count", tool="opencode-reply") == 2


def _check_requests(grown: Growth, twin: Twin, since: int) -> None:
    """Each request that arrived was counted by its route, and none that did not."""
    arrived: dict[str, int] = {}
    for seen in twin.requests[since:]:
        route = _ID.sub("{id}", seen.line)
        if not route.endswith("/event"):
            arrived[route] = arrived.get(route, 0) + 1
    for route, count in arrived.items():
        of_route = {
            result: grown.of("opencode_requests_total", route=route, result=result)
            for result in metrics.REQUEST_RESULTS
        }
        answered = sum(of_route[result] for result in _ANSWERED)
        assert answered <= count <= answered + of_route["abandoned"] + of_route["timeout"], route
        assert sum(of_route.values()) == grown.of(
            "opencode_request_duration_seconds_count", route=route
        )
    assert grown.of("opencode_requests_total", route="GET /session/status", result="5xx") == 1
    assert grown.of("opencode_requests_total", result="unreachable") >= 1
    assert grown.of("opencode_request_retries_total", route="GET /session/status") >= 1
    assert grown.of("opencode_request_retries_total", kind="submission") == 0
    assert grown.of("opencode_requests_total", route=OTHER_ROUTE) == 0


def _check_labels(before: Scrape, after: Scrape, day: Day) -> None:
    """No id, no name: every series was there before anything happened."""
    assert set(after.values) == set(before.values)
    values = {value for _, labels in after.values for _, value in labels}
    assert not [value for value in values if _ID.search(value) or "127.0.0.1" in value]
    assert not values & {*day.session_ids, *day.turn_ids, SECRET, "local", "scripted/one"}


async def test_state_is_read_at_each_scrape(bridges: Bridges, twin: Twin, project: Path) -> None:
    bridge = await bridges.attached(REQUEST_TIMEOUT_SECONDS="1", CLEANUP_TIMEOUT_SECONDS="1")
    await bridge.start("SAY:idle", project)
    running = await bridge.begin("HANG", project)
    await streaming(twin)
    doubtful = twin.fail(Hang(), path=r"/prompt_async$", times=None)
    await bridge.call("opencode", prompt="SAY:lost", cwd=str(project))
    assert doubtful.hits
    first = await scrape(bridges.database)
    stuck = twin.fail(Status(500), path=r"/abort$", times=None)
    assert (await bridge.end(running)).status == "ending"
    second = await scrape(bridges.database)
    stuck.release()
    doubtful.release()

    assert first.all("sessions") == {"active": 2, "quarantined": 1, "ending": 0}
    assert first.all("finisher_backlog") == {"turn": 2, "end": 0, "start": 0}
    assert first.get("end_oldest_age_seconds") == first.get("turns_overdue") == 0
    assert second.all("sessions") == {"active": 1, "quarantined": 1, "ending": 1}
    assert second.all("finisher_backlog") == {"turn": 2, "end": 1, "start": 0}
    assert 0.1 < second.get("end_oldest_age_seconds") < 30
    assert second.get("database_up") == 1


async def test_a_turn_past_its_limit_is_overdue(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """While OpenCode hangs it cannot be seen to stop."""
    bridge = await bridges.attached(REQUEST_TIMEOUT_SECONDS="1")
    await bridge.begin("HANG", project, timeout_seconds=1)
    await streaming(twin)
    hung = twin.fail(Hang(), times=None)

    async def overdue() -> bool:
        return (await scrape(bridges.database)).get("turns_overdue") == 1

    await eventually(overdue, what="the turn is overdue")
    hung.release()


async def test_what_a_hanging_opencode_costs_is_a_timeout(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    bridge = await bridges.attached(REQUEST_TIMEOUT_SECONDS="1")
    session_id = (await bridge.start("SAY:hi", project)).session_id
    before = await scrape(bridges.database)
    hung = twin.fail(Hang(), method="GET", path=r"/message$", times=None)
    await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:more")
    hung.release()
    grown = Growth(before, await scrape(bridges.database))

    route = "GET /session/{id}/message"
    assert grown.by("opencode_requests_total", "kind", "route", "result").get(
        ("read", route, "timeout")
    ) == len(hung.hits)
    assert grown.of("opencode_request_duration_seconds_sum", route=route) >= 0.9


async def test_a_call_that_its_client_cancels_and_an_unknown_tool_are_counted(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    before = await scrape(bridges.database)
    call = asyncio.create_task(bridge.start("HANG", project))
    await streaming(twin)
    call.cancel()
    result = await bridge.client.call_tool_mcp("no-such-tool", {})
    assert result.is_error

    async def counted() -> bool:
        grown = Growth(before, await scrape(bridges.database))
        return grown.by("tool_calls_total", "tool", "result") == {
            ("opencode", "cancelled"): 1,
            ("other", "INVALID_ARGUMENT"): 1,
        }

    await eventually(counted, what="both are counted")


async def test_a_database_that_is_gone_is_a_metric(bridges: Bridges, tmp_path: Path) -> None:
    """The rest is told all the same: that is when somebody looks."""
    settings = load_settings(bridges.attach_env(), cwd=tmp_path)
    async with open_runtime(settings, {}) as runtime:
        there = Scrape((await runtime.metrics())[0].decode())
        bridges.database.unlink()
        gone = Scrape((await runtime.metrics())[0].decode())
    assert (there.get("database_up"), gone.get("database_up")) == (1, 0)
    assert "opencode_mcp_sessions" in there.kinds
    assert "opencode_mcp_sessions" not in gone.kinds
    assert "opencode_mcp_turns_total" in gone.kinds
    assert {"process_resident_memory_bytes", "process_open_fds", "python_info"} <= set(gone.kinds)
    assert gone.sum("info") == 1


def test_every_outcome_and_failure_of_a_turn_has_its_series() -> None:
    over = {one.value for one in TurnStatus if Verdict(one).is_over}
    assert over == set(metrics.OUTCOMES) - {"unknown"}
    made = [found for found in vars(failures).values() if isinstance(found, failures.Failure)]
    made += [failures.looped(None), failures.incomplete(None, None, seen=False)]
    assert {failure.name for failure in made} | {"UPSTREAM_ERROR"} == set(metrics.TURN_ERRORS)


#: what stands for the arguments of the client's methods
_FILL: dict[str, object] = {
    "directory": "/somewhere",
    "session_id": "ses_1",
    "message_id": "msg_1",
    "request_id": "per_1",
    "prompt": Prompt("msg_1", "a prompt"),
    "title": None,
    "metadata": {},
    "limit": 1,
    "at": datetime.now(UTC),
    "reply": "once",
    "answers": [],
}


async def test_every_route_that_the_client_asks_for_has_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that is not in the table would be "other"; one that nobody asks for is a dead row."""
    made: list[Call] = []

    async def refuse(_self: object, call: Call, **_: object) -> None:
        made.append(call)
        raise call.error(OpencodeProtocolError, "not sent")

    monkeypatch.setattr(Http, "send", refuse)
    client = OpencodeClient("http://x", username="u", password=None, request_timeout_s=1)
    for name, method in inspect.getmembers(client, inspect.iscoroutinefunction):
        if not name.startswith("_"):
            wanted = inspect.signature(method).parameters.values()
            arguments = {one.name: _FILL[one.name] for one in wanted if one.default is one.empty}
            with pytest.raises(OpencodeError):
                await method(**arguments)
    assert {call.route for call in made} == set(ROUTES) - {OTHER_ROUTE, "GET /global/event"}
    unknown = Call(CallKind.READ, "GET", "/session/agent/of/path")
    assert unknown.route == OTHER_ROUTE

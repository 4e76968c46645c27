"""Log lines: one event a line, with the ids of what it is for, however deep it comes from."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from opencode_mcp.log_events import Event
from tests.support.polling import eventually, steadily
from tests.telling.day import live_through
from tests.telling.lines import CALL_IDS
from tests.telling.scraping import scrape
from tests.turns.kills import killed_with_a_turn
from tests.turns.reading import held, streaming
from tests.twin import Reset, Status

if TYPE_CHECKING:
    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.telling.lines import Log
    from tests.twin import Twin

_DOCS = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
_KEYS = {"time", "level", "logger", "message", "event"}


class Told(NamedTuple):
    """An event as the documentation tells it."""

    level: str
    fields: set[str]
    optional: set[str]


def documented() -> dict[str, Told]:
    """Return the table of events."""
    rows = re.findall(r"^\| ((?:`[a-z_]+` ?)+)\| (\w+) \| (.*?) ?\| .*\|$", _DOCS, re.MULTILINE)
    found: dict[str, Told] = {}
    for names, level, fields in rows:
        told = Told(
            level.upper(),
            set(re.findall(r"`(\w+)`(?!\?)", fields)),
            set(re.findall(r"`(\w+)`\?", fields)),
        )
        found |= dict.fromkeys(re.findall(r"\w+", names), told)
    return {name: told for name, told in found.items() if not name.startswith("opencode_mcp_")}


def test_every_event_is_documented_with_its_level() -> None:
    levels = {10: "DEBUG", 20: "INFO", 30: "WARNING", 40: "ERROR"}
    table = {name: told.level for name, told in documented().items()}
    assert table == {event.name.lower(): levels[event.level] for event in Event}


async def test_every_metric_is_documented_with_its_type_and_labels(bridges: Bridges) -> None:
    rows = re.findall(r"^\| `(opencode_mcp_\w+)` \| (\w+) \| (.*?) ?\| .*\|$", _DOCS, re.MULTILINE)
    table = {name: (kind, set(re.findall(r"\w+", labels))) for name, kind, labels in rows}
    kinds = (await scrape(bridges.database)).kinds
    ours = {
        name: (kind, set(labels)) for name, (kind, labels) in kinds.items() if "opencode_" in name
    }
    # a family without a series yet has no labels to compare
    for name, (kind, labels) in ours.items():
        assert table[name][0] == kind, name
        assert not labels or table[name][1] == labels, name
    assert set(table) == set(ours)


async def test_each_line_of_a_day_is_an_event_with_what_the_documentation_says(
    log: Log, bridge: Bridge, twin: Twin, project: Path
) -> None:
    day = await live_through(bridge, twin, project)
    table = documented()
    for line in log.lines:
        told = table[line["event"]]
        given = set(line) - _KEYS
        assert line["level"] == told.level, line
        assert told.fields <= given, line
        assert given <= told.fields | told.optional | _IDS, line
    assert log.events() >= {
        "server_started",
        "opencode_attached",
        "session_started",
        "turn_submitted",
        "turn_over",
        "stop_asked",
        "stop_confirmed",
        "events_lost",
        "approval_asked",
        "approval_answered",
        "end_accepted",
        "end_confirmed",
        "end_unconfirmed",
        "request_repeated",
        "call_over",
    }
    assert {line["turn_id"] for line in log.of("turn_submitted")} == day.turn_ids
    over = [line["turn_id"] for line in log.of("turn_over")]
    assert sorted(over) == sorted(day.turn_ids), "each once"
    assert [line["session_id"] for line in log.of("session_started")] == day.session_ids
    ended = [line["session_id"] for line in log.of("end_confirmed")]
    assert sorted(ended) == sorted(day.session_ids)
    assert len(log.of("end_accepted")) == len(day.session_ids)
    assert len(log.of("approval_asked")) == len(log.of("approval_answered")) == 4
    reasons = {line["reason"] for line in log.of("stop_asked")}
    assert reasons == {"cancel", "timeout"}


#: what any line may carry, since it is for something
_IDS = {"session_id", "turn_id", "owner", "tool", "call_id"}


async def test_a_call_is_one_line_that_says_whose_and_how_it_went(
    log: Log, bridge: Bridge, project: Path
) -> None:
    answer = await bridge.start("SAY:hi", project)
    await bridge.status("ses_unknown")
    await bridge.call("opencode-cancel", sessionId=answer.session_id, turnId="msg_unknown")
    done, unknown, no_turn = log.of("call_over")

    assert done["session_id"] == answer.session_id
    assert done["turn_id"] == answer.structured["turnId"]
    assert (done["tool"], done["owner"], done["status"]) == ("opencode", "local", "completed")
    assert (done["client"], done["client_version"]) == ("fastmcp", done["client_version"])
    assert done["elapsed_ms"] >= 0
    assert "error_name" not in done
    assert (unknown["status"], unknown["error_name"]) == ("error", "SESSION_NOT_FOUND")
    assert (unknown["session_id"], unknown["why"][:10]) == ("ses_unknown", "no session")
    assert (no_turn["error_name"], no_turn["session_id"]) == ("TURN_NOT_FOUND", answer.session_id)
    assert len({line["call_id"] for line in (done, unknown, no_turn)}) == 3


async def test_a_line_from_deep_inside_names_what_it_is_for(
    log: Log, bridge: Bridge, twin: Twin, project: Path
) -> None:
    """A request of a call names the call; one of a turn's observer names the turn, and no call."""
    first = await bridge.begin("SLOW:4000,50", project)
    second = await bridge.begin("SLOW:4000,50", project)
    await streaming(twin, 2)
    seen = len(log.lines)
    planned = [
        twin.fail(Status(503), method="GET", path=rf"^/session/{one}/message$")
        for one in (first, second)
    ]
    for one in (first, second):  # an abort makes its observer read
        await bridge.call("opencode-cancel", sessionId=one)
    await asyncio.gather(bridge.settled(first), bridge.settled(second))
    assert all(plan.hits for plan in planned)
    repeated = [line for line in log.lines[seen:] if line["event"] == "request_repeated"]
    turn_of = {line["session_id"]: line["turn_id"] for line in log.of("turn_submitted")}

    assert {line["session_id"] for line in repeated} == {first, second}
    for line in repeated:
        assert line["route"] == "GET /session/{id}/message"
        by_call = set(line) >= CALL_IDS
        assert by_call or line["turn_id"] == turn_of[line["session_id"]]
        assert by_call or not CALL_IDS & set(line)


async def test_what_goes_on_after_a_call_does_not_name_it(
    log: Log, bridge: Bridge, twin: Twin, project: Path
) -> None:
    """The first call builds the engine: all that lives on is begun in it."""
    session_id = await bridge.begin("SLOW:20,20", project)
    await bridge.settled(session_id)
    twin.drop_streams()

    async def lost_and_back() -> bool:
        return {"events_lost", "events_back"} <= log.events()

    await eventually(lost_and_back, what="the stream is lost and back")
    await bridge.end(session_id)
    for event in ("turn_over", "end_confirmed", "events_lost", "events_back"):
        for line in log.of(event):
            assert not CALL_IDS & set(line), line
    assert all("session_id" not in line for line in log.of("events_lost"))
    assert set(log.of("turn_submitted")[0]) >= CALL_IDS


@pytest.mark.usefixtures("soon")
async def test_a_turn_of_a_dead_process_is_told_of_by_who_takes_it_up(
    log: Log, bridges: Bridges, twin: Twin, project: Path
) -> None:
    session_id = await killed_with_a_turn(bridges, twin, project)
    second = await bridges.attached(CLEANUP_TIMEOUT_SECONDS="5")

    async def taken_up() -> bool:
        return bool(log.of("turn_taken_up"))

    await eventually(taken_up, what="the turn is taken up")
    await second.call("opencode-cancel", sessionId=session_id, wait_ms=10_000)
    (taken,) = log.of("turn_taken_up")
    (over,) = log.of("turn_over")
    assert taken["session_id"] == over["session_id"] == session_id
    assert over["turn_id"] == taken["turn_id"]
    assert over["outcome"] == "cancelled"
    assert not CALL_IDS & (set(taken) | set(over))


async def test_a_turn_is_told_of_by_its_own_process_alone(
    log: Log, bridges: Bridges, twin: Twin, project: Path
) -> None:
    first, second = await bridges.attached(), await bridges.attached()
    with held(twin):
        session_id = await first.begin("SAY:told", project)
        await streaming(twin)
    await second.call("opencode-status", sessionId=session_id, wait_seconds=20)
    await first.settled(session_id)
    assert len(log.of("turn_over")) == 1


async def test_an_outage_is_told_once_for_each_turn_and_so_is_its_end(
    log: Log, bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = await bridge.begin("HANG", project)
    await streaming(twin)
    hung = twin.fail(Status(500), path=r"^/session/status$", times=None)

    async def began() -> bool:
        return len(log.of("outage_began")) == 1

    async def over() -> bool:
        return bool(log.of("outage_over"))

    await eventually(began, what="the outage is told")
    await steadily(began, for_s=2.5, what="it is told once")
    hung.release()
    await eventually(over, what="its end is told")
    (first,), (last,) = log.of("outage_began"), log.of("outage_over")
    assert first["session_id"] == last["session_id"] == session_id
    assert first["turn_id"] == last["turn_id"]
    assert "500" in first["why"]
    assert last["elapsed_ms"] >= 2000


async def test_quarantine_is_told(log: Log, bridge: Bridge, twin: Twin, project: Path) -> None:
    lost = twin.fail(Reset(after=True), path=r"/prompt_async$")
    unread = twin.fail(Status(400), method="GET", path=r"/message/msg_", times=None)
    answer = await bridge.call("opencode", prompt="SAY:hi", cwd=str(project))
    assert (lost.hits, answer.error) == (lost.hits, "SUBMISSION_UNCONFIRMED")
    unread.release()
    await bridge.settled(answer.session_id)

    async def told() -> bool:
        return {"session_quarantined", "session_freed"} <= log.events()

    await eventually(told, what="that it was quarantined and freed is told")
    (quarantined,) = log.of("session_quarantined")
    (freed,) = log.of("session_freed")
    assert quarantined["session_id"] == freed["session_id"] == answer.session_id
    assert quarantined["turn_id"] == freed["turn_id"]


async def test_an_idle_session_ends_and_the_log_says_why(
    log: Log, bridges: Bridges, soon: None, project: Path
) -> None:
    del soon
    bridge = await bridges.attached(SESSION_IDLE_TTL_SECONDS="1")
    session_id = (await bridge.start("SAY:hi", project)).session_id

    async def ended() -> bool:
        return bool(log.of("end_confirmed"))

    await eventually(ended, what="the idle session has ended")
    (accepted,) = log.of("end_accepted")
    assert (accepted["session_id"], accepted["why"]) == (session_id, "idle")
    assert accepted["action"] == "delete"

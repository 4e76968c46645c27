"""Who may do what: every tool as its session's owner, a stranger, an admin, and nobody (§1)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from opencode_mcp.callers.tool_table import NAMES
from tests.support.polling import eventually
from tests.turns.asks import QUESTION

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Answer, Bridge
    from tests.support.bridges import Bridges
    from tests.support.http_bridge import HttpServer
    from tests.twin import Twin

ALICE = "alices-token-0123456789"
BOB = "bobs-token-0123456789"
ADMIN = "admins-token-0123456789"
_NOBODY = "ses_000000000001AbCdEfGhIjKlMn"


@pytest_asyncio.fixture
async def server(bridges: Bridges) -> HttpServer:
    return await bridges.http(
        AUTH_TOKENS=f"alice:{ALICE},bob:{BOB},root:{ADMIN}", ADMINS="token:root"
    )


@dataclass(frozen=True)
class People:
    """Two callers, and the OpenCode that they share."""

    alice: Bridge
    bob: Bridge
    twin: Twin


@pytest_asyncio.fixture
async def people(alice: Bridge, bob: Bridge, twin: Twin) -> People:
    return People(alice, bob, twin)


@pytest_asyncio.fixture
async def alice(server: HttpServer) -> Bridge:
    return await server.caller(ALICE)


@pytest_asyncio.fixture
async def bob(server: HttpServer) -> Bridge:
    return await server.caller(BOB)


@pytest_asyncio.fixture
async def admin(server: HttpServer) -> Bridge:
    return await server.caller(ADMIN)


def _same(found: Answer, unknown: Answer, session_id: str) -> None:
    """Both answers say the same, each of its own id."""
    told, expected = found.structured, unknown.structured
    for each in (told, expected):
        each.pop("elapsedMs", None)
    assert str(told).replace(session_id, "ID") == str(expected).replace(_NOBODY, "ID")
    assert found.is_error is unknown.is_error


_CALLS: list[tuple[str, dict[str, object]]] = [
    ("opencode-reply", {"prompt": "SAY:x", "wait-seconds": 0}),
    ("opencode-status", {}),
    ("opencode-status", {"wait-seconds": 1}),
    ("opencode-cancel", {}),
    ("opencode-cancel", {"turnId": "msg_1"}),
    ("opencode-approve", {"approvalId": "per_1", "decision": "allow"}),
    ("opencode-output", {"turn": 1}),
    ("opencode-output", {"turn": 9, "section": "tool-calls", "snapshot-id": "snap_1"}),
    ("opencode-output", {"turn": 1, "section": "structured-output"}),
    ("opencode-output", {"turn": 1, "section": "diff"}),
    ("opencode-output", {"turn": 1, "section": "diff", "diff-view": "patch", "file-index": 0}),
    ("opencode-end", {}),
    ("opencode-end", {"action": "archive"}),
]


@pytest.mark.parametrize(("tool", "more"), _CALLS)
async def test_to_a_stranger_a_session_is_like_one_that_never_was(
    people: People, project: Path, tool: str, more: dict[str, object]
) -> None:
    alice, bob, twin = people.alice, people.bob, people.twin
    session_id = await alice.begin("HANG", project)

    async def runs() -> bool:
        return session_id in twin.runs.running

    await eventually(runs, what="the turn runs")
    since = len(twin.requests)
    for name in ("sessionId", "threadId", "conversationId"):
        foreign = await bob.call_exactly(tool, {name: session_id, **more})
        unknown = await bob.call_exactly(tool, {name: _NOBODY, **more})
        _same(foreign, unknown, session_id)
    changes = [line for line in twin.lines(since) if not line.startswith("GET")]
    assert changes == []
    assert (await alice.status(session_id)).status == "running"


async def test_nobody_reaches_any_tool(server: HttpServer, alice: Bridge, twin: Twin) -> None:
    """Each tool there is: a new one is behind the same door."""
    since = len(twin.requests)
    assert {tool.name for tool in await alice.client.list_tools()} == set(NAMES)
    for name in NAMES:
        call = {"name": name, "arguments": {"prompt": "SAY:x", "sessionId": _NOBODY}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        for token in ({}, {"authorization": "Bearer somebody-else-0123456789"}):
            assert (await server.post(body, **token)).status == 401
    assert twin.lines(since) == []


async def test_a_batch_and_a_list_hold_only_what_is_theirs(
    alice: Bridge, bob: Bridge, project: Path
) -> None:
    hers = await alice.begin("HANG", project)
    his = await bob.begin("SAY:x", project)
    assert list(await alice.listed()) == [hers]
    assert list(await bob.listed()) == [his]
    assert (await bob.call("opencode-status")).structured["total"] == 1
    batch = await bob.call("opencode-status", ids=[his, hers])
    foreign = await bob.call("opencode-status", ids=[his, _NOBODY])
    told = [answer.structured["results"][1] for answer in (batch, foreign)]
    assert str(told[0]).replace(hers, "ID") == str(told[1]).replace(_NOBODY, "ID")


async def test_an_ended_session_is_told_of_to_its_owner_alone(
    alice: Bridge, bob: Bridge, project: Path
) -> None:
    session_id = (await alice.start("SAY:x", project)).session_id
    assert (await alice.end(session_id)).status == "ended"
    assert "ended at" in (await alice.status(session_id)).text
    foreign, unknown = await bob.status(session_id), await bob.status(_NOBODY)
    _same(foreign, unknown, session_id)


async def test_an_admin_sees_all_with_their_owners(
    alice: Bridge, admin: Bridge, project: Path
) -> None:
    hers = await alice.begin("HANG", project)
    own = await admin.begin("SAY:x", project)
    listed = (await admin.call("opencode-status")).structured["sessions"]
    assert {entry["sessionId"]: entry["owner"] for entry in listed} == {
        hers: "token:alice",
        own: "token:root",
    }
    assert "owner" not in (await alice.call("opencode-status")).structured["sessions"][0]
    assert (await admin.status(hers)).status == "running"


async def test_what_a_turn_left_is_there_for_its_owner_and_an_admin_alone(
    people: People, admin: Bridge, project: Path
) -> None:
    """Nor does a snapshot's id open it, though it is kept in memory."""
    hers = (await people.alice.start("SAY:secret", project)).session_id
    asked = {"turn": 1, "sessionId": hers}
    own = await people.alice.call("opencode-output", **asked)
    pinned = {**asked, "snapshot_id": own.structured["snapshotId"]}
    foreign = [await people.bob.call("opencode-output", **one) for one in (asked, pinned)]

    assert own.text == (await admin.call("opencode-output", **pinned)).text == "secret"
    assert [answer.error for answer in foreign] == ["SESSION_NOT_FOUND"] * 2


async def test_an_admin_stops_and_ends_what_others_started(
    alice: Bridge, admin: Bridge, twin: Twin, project: Path
) -> None:
    hers = await alice.begin("HANG", project)
    stopped = await admin.call("opencode-cancel", sessionId=hers, wait_ms=5000)
    assert stopped.status == "cancelled"
    assert (await admin.end(hers)).status == "ended"
    assert hers not in twin.world.sessions
    assert (await alice.status(hers)).error == "SESSION_NOT_FOUND"


async def test_an_admin_does_not_go_on_with_what_others_started(
    alice: Bridge, admin: Bridge, twin: Twin, project: Path
) -> None:
    hers = (await alice.start("SAY:x", project)).session_id
    since = len(twin.requests)
    for tool, more in _CALLS:
        if tool in {"opencode-reply", "opencode-approve"}:
            answer = await admin.call_exactly(tool, {"sessionId": hers, **more})
            assert answer.error == "POLICY_NOT_ALLOWED"
            assert "token:alice" in answer.text
    assert not [line for line in twin.lines(since) if line.startswith("POST")]


@pytest.mark.parametrize("has_person", [True, False])
async def test_what_an_admin_watches_is_still_for_its_owners_person(
    server: HttpServer, twin: Twin, project: Path, *, has_person: bool
) -> None:
    """An ask of a session with `on-request` is neither shown to the admin's person nor rejected."""
    asked: list[str] = []

    async def person(message: str, *_: object) -> dict[str, object]:
        asked.append(message)
        return {}

    alice = await server.caller(ALICE, mode="auto")
    admin = await server.caller(ADMIN, mode="auto", person=person if has_person else None)
    hers = await alice.begin(QUESTION, project, approval_policy="on-request")

    async def waits() -> bool:
        return bool(twin.runs.asks.pending)

    await eventually(waits, what="the question waits")
    answer = await admin.call("opencode-status", sessionId=hers, wait_seconds=2)
    assert answer.status == "waiting_for_approval"
    assert asked == []
    assert await waits()


async def test_capacity_is_counted_for_each_principal(bridges: Bridges, project: Path) -> None:
    server = await bridges.http(AUTH_TOKENS=f"alice:{ALICE},bob:{BOB}", MAX_SESSIONS="1")
    alice, bob = await server.caller(ALICE), await server.caller(BOB)
    await alice.start("SAY:x", project)
    refused = await alice.call("opencode", prompt="SAY:x", cwd=str(project))
    assert refused.error == "SESSION_CAPACITY"
    await bob.start("SAY:x", project)


async def test_parallel_calls_of_several_callers_keep_apart(
    alice: Bridge, bob: Bridge, project: Path
) -> None:
    starts = [caller.start("SAY:x", project) for caller in (alice, bob) for _ in range(5)]
    answers = await asyncio.gather(*starts)
    hers, his = ({a.session_id for a in part} for part in (answers[:5], answers[5:]))
    assert set(await alice.listed()) == hers
    assert set(await bob.listed()) == his


async def test_a_request_id_of_another_caller_is_another_one(people: People, project: Path) -> None:
    """It joins nothing of theirs, is in conflict with nothing of theirs, and tells nothing."""
    alice, bob, twin = people.alice, people.bob, people.twin
    hers = await alice.start("SAY:hers", project, request_id="the-same")
    his = await bob.start("SAY:his", project, request_id="the-same")
    assert hers.session_id != his.session_id
    assert not his.structured["request"]["replayed"]
    again = await alice.start("SAY:hers", project, request_id="the-same")
    assert (again.session_id, again.structured["request"]["replayed"]) == (hers.session_id, True)
    assert (await alice.end(hers.session_id)).status == "ended"
    assert (await bob.start("SAY:his", project, request_id="the-same")).status == "completed"
    assert len([line for line in twin.lines() if line.endswith("/prompt_async")]) == 2


async def test_a_strangers_reply_claims_nothing_and_learns_nothing_of_its_owners_request_id(
    alice: Bridge, bob: Bridge, project: Path
) -> None:
    session_id = (await alice.start("SAY:x", project)).session_id
    reply = {"prompt": "SAY:more", "request-id": "the-same"}
    first = await alice.call_exactly("opencode-reply", {"sessionId": session_id, **reply})
    foreign = await bob.call_exactly("opencode-reply", {"sessionId": session_id, **reply})
    unknown = await bob.call_exactly("opencode-reply", {"sessionId": _NOBODY, **reply})
    _same(foreign, unknown, session_id)
    assert foreign.error == "SESSION_NOT_FOUND"
    assert first.status == "completed"


async def test_an_admin_does_not_join_what_anothers_request_id_began(
    alice: Bridge, admin: Bridge, project: Path
) -> None:
    hers = await alice.start("SAY:x", project, request_id="the-same")
    own = await admin.start("SAY:x", project, request_id="the-same")
    assert own.session_id != hers.session_id


async def test_anonymous_callers_share_what_they_start(bridges: Bridges, project: Path) -> None:
    server = await bridges.http()
    one, two = await server.caller(), await server.caller()
    session_id = (await one.start("SAY:x", project)).session_id
    assert list(await two.listed()) == [session_id]

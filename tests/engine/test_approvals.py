"""A turn's asks: since when they wait, who is shown one, what a rejection takes along and tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from opencode_mcp.clock import Clock
from opencode_mcp.engine.answers import Allow, Reject
from opencode_mcp.engine.approvals import MARK, Approvals, for_model
from opencode_mcp.engine.effects import ToolCall
from opencode_mcp.engine.outcome import TurnStatus, Verdict
from opencode_mcp.engine.reading import Tree
from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.records import AnsweredBy, ApprovalPolicy
from tests.engine.asks import permission, question
from tests.opencode.fake_server import FakeServer, says

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_TREE = Tree({"ses_1": "/p", "ses_child": "/p"})
_START = datetime(2026, 1, 1, tzinfo=UTC)


class SetClock(Clock):
    """Stands still unless it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return _START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as running:
        yield running


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[OpencodeClient]:
    async with OpencodeClient(
        server.url, username="opencode", password=None, request_timeout_s=5.0
    ) as opened:
        yield opened


def approvals(clock: Clock, policy: ApprovalPolicy = ApprovalPolicy.CALLER) -> Approvals:
    return Approvals(policy, clock, 10.0)


def messages(found: Approvals, *calls: ToolCall) -> list[str]:
    verdict = found.annotated(Verdict(TurnStatus.COMPLETED, tool_calls=calls))
    return [message for code, message in verdict.warnings if code == "APPROVAL_REJECTED"]


def test_an_ask_waits_from_when_it_was_first_seen(clock: SetClock) -> None:
    found = approvals(clock)
    found.saw([permission()], _TREE)
    clock.seconds = 4.0
    found.saw([permission(), permission("per_2")], _TREE)
    verdict = found.annotated(Verdict(TurnStatus.WAITING, pending=tuple(found.asks)))

    assert verdict.ask_times["per_1"].asked_at == _START
    assert verdict.ask_times["per_1"].deadline_at == _START + timedelta(seconds=10)
    assert verdict.ask_times["per_2"].asked_at == _START + timedelta(seconds=4)
    assert found.left_s() == pytest.approx(6.0)


def test_where_nobody_is_asked_a_turn_does_not_wait(clock: SetClock) -> None:
    waiting = Verdict(TurnStatus.WAITING, pending=(permission(),))
    for policy in ApprovalPolicy:
        found = approvals(clock, policy)
        found.saw([permission()], _TREE)
        runs = found.annotated(waiting).status is TurnStatus.RUNNING
        assert runs is (policy is ApprovalPolicy.NEVER)


async def test_never_rejects_at_once_and_the_others_at_the_deadline(
    clock: SetClock, server: FakeServer, client: OpencodeClient
) -> None:
    for policy in ApprovalPolicy:
        found = approvals(clock, policy)
        found.saw([permission()], _TREE)
        if policy is not ApprovalPolicy.NEVER:
            assert not await found.reject_due(client)
            clock.seconds += 10.0
        server.script(says(body=True), says([]))
        assert await found.reject_due(client)
        assert not found.asks
        why = "policy is never" if policy is ApprovalPolicy.NEVER else "within 10 s"
        assert why in messages(found)[0]


async def test_a_rejection_tells_of_what_it_took_along(
    clock: SetClock, server: FakeServer, client: OpencodeClient
) -> None:
    """OpenCode rejects all permissions of a session with one of them (facts 5.4)."""
    found = approvals(clock)
    child = permission("per_3", "ses_child")
    found.saw([permission(), permission("per_2"), question(), child], _TREE)
    server.script(says(body=True), says([]))
    assert await found.reject(client, "per_1", "somebody said no", by=AnsweredBy.PERSON)

    assert [ask.id for ask in found.asks] == ["que_1", "per_3"]
    assert messages(found) == ["2 asks were rejected, because somebody said no: bash ls; bash ls"]


async def test_a_rejection_is_told_although_the_turn_is_over_before_the_ask_is_seen_gone(
    clock: SetClock, server: FakeServer, client: OpencodeClient
) -> None:
    """Seen on OpenCode: the keeper judged the turn while the reply was being confirmed."""
    found = approvals(clock)
    found.saw([permission()], _TREE)
    told: list[str] = []

    async def over_already(_server: FakeServer, _request: web.Request) -> web.StreamResponse:
        found.saw_none()
        told.extend(messages(found))
        return web.json_response([])

    server.script(says(body=True), over_already)
    assert await found.reject(client, "per_1", "somebody said no", by=AnsweredBy.PERSON)
    assert told == ["1 ask was rejected, because somebody said no: bash ls"]
    assert messages(found) == told


async def test_a_rejection_that_came_to_nothing_is_not_told(
    clock: SetClock, server: FakeServer, client: OpencodeClient
) -> None:
    found = approvals(clock)
    found.saw([permission()], _TREE)
    gone = {"_tag": "PermissionNotFoundError", "requestID": "per_1", "message": "no"}
    server.script(says(gone, 404))
    assert not await found.reject(client, "per_1", "somebody said no", by=AnsweredBy.PERSON)
    assert not messages(found)


async def test_what_a_caller_rejects_is_not_told_back_as_a_warning(
    clock: SetClock, server: FakeServer, client: OpencodeClient
) -> None:
    found = approvals(clock)
    found.saw([permission()], _TREE)
    server.script(says(body=True), says([]))
    assert await found.answer(client, "per_1", Reject("use ls"), by=AnsweredBy.CALLER)
    assert not messages(found)


async def test_a_list_that_was_read_before_the_answer_brings_no_ask_back(
    clock: SetClock, server: FakeServer, client: OpencodeClient
) -> None:
    found = approvals(clock)
    found.saw([permission()], _TREE)
    server.script(says(body=True), says([]))
    assert await found.answer(client, "per_1", Reject(), by=AnsweredBy.CALLER)
    found.saw([permission()], _TREE)
    assert not found.asks


async def test_what_does_not_wait_is_not_answered(
    clock: SetClock, server: FakeServer, client: OpencodeClient
) -> None:
    found = approvals(clock)
    found.saw([permission()], _TREE)
    found.saw_none()
    assert not await found.answer(client, "per_1", Allow(), by=AnsweredBy.CALLER)
    assert not server.seen


def test_one_ask_is_shown_at_a_time_and_again_when_it_was_forgotten(clock: SetClock) -> None:
    found = approvals(clock, ApprovalPolicy.ON_REQUEST)
    found.saw([permission(), permission("per_2")], _TREE)
    first = found.next_to_show()
    assert first is not None
    found.show(first.ask.id, 5.0)
    assert found.next_to_show() is None
    clock.seconds = 6.0
    assert found.next_to_show() is first, "its client never came back"
    found.show(first.ask.id, 5.0)
    found.hide(first.ask.id)
    assert found.next_to_show() is first


def test_a_rejection_by_another_process_is_read_from_the_history(clock: SetClock) -> None:
    reason = f"The user rejected it with the following feedback: {for_model('so it is')}"
    calls = (ToolCall("bash", "error", None, reason), ToolCall("read", "error", None, "no file"))
    assert MARK in reason
    assert messages(approvals(clock), *calls) == ["1 ask was rejected, because so it is: bash"]

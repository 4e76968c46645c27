"""Contract §3: whatever turns did, whatever their callers ask for, a result stays in its bounds.

Under 45,000 characters as `structuredContent` and as text, no id cut, and always said.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import Phase as Step
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from opencode_mcp.callers.answers import error_result, present_error, present_unconfirmed
from opencode_mcp.callers.batch_result import Member, present_batch
from opencode_mcp.callers.cancels import present_cancel
from opencode_mcp.callers.listing import present_page
from opencode_mcp.callers.presenting import present_turn, present_view
from opencode_mcp.callers.request_ids import with_request
from opencode_mcp.callers.shown import Shown
from opencode_mcp.callers.sizing import MAX_RESULT_CHARS, SPARE_CHARS, serialized_size
from opencode_mcp.callers.tool import to_tool_result
from opencode_mcp.callers.wire import output_schema
from opencode_mcp.clock import Clock
from opencode_mcp.engine.cancelling import Cancelled
from opencode_mcp.engine.effects import ToolCall, Usage
from opencode_mcp.engine.ends import Unconfirmed
from opencode_mcp.engine.failures import Failure
from opencode_mcp.engine.looping import ResponseLoop
from opencode_mcp.engine.outcome import AskTimes, TurnStatus, Verdict
from opencode_mcp.engine.overview import Line, View
from opencode_mcp.engine.requests import RepeatableCall
from opencode_mcp.engine.structured import Structured
from opencode_mcp.errors import InvalidArgumentError, SessionNotFoundError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode.models import PermissionRequest, QuestionRequest, RemoteStatus
from opencode_mcp.records import EndAction, Ending, Session, Submission, Turn

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.engine import Engine

# a failure is to be told as what it is, however large its example
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

_SHAPE = Draft202012Validator(output_schema())
_NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
#: the longest id that a caller may send (contract §1)
_LONGEST_ID = "ses_" + "a" * 196
#: of a whole batch
_LONGEST_IDS = [f"{_LONGEST_ID[:-2]}{n:02}" for n in range(16)]
_ENGINE = cast("Engine", SimpleNamespace(clock=Clock()))

#: what costs most: control characters take six characters each as JSON
_texts = st.sampled_from(["\x01", "😀", '"', "\\", "a", "é", "\u2028", "line\n"]).flatmap(
    lambda character: st.sampled_from([0, 1, 40, 300, 5_000, 60_000]).map(lambda n: character * n)
) | st.text(max_size=50)
_ids = st.sampled_from(["a" * 26, "b" * 190, "c" * 60])


def _permission(said: str, name: str) -> PermissionRequest:
    return PermissionRequest(
        id=f"per_{name}", session_id=f"ses_{name}", permission=said, patterns=[said] * 30
    )


def _question(said: str, name: str) -> QuestionRequest:
    options = [{"label": said, "description": said}] * 12
    questions = [{"question": said, "header": said, "options": options}] * 12
    return QuestionRequest.model_validate(
        {"id": f"que_{name}", "sessionID": f"ses_{name}", "questions": questions}
    )


_asks = st.builds(_permission, _texts, _ids) | st.builds(_question, _texts, _ids)
_calls = st.builds(ToolCall, tool=_texts, status=st.just("completed"), title=_texts, reason=_texts)
_counts = st.sampled_from([1, 7, 2_000])
_structured = st.builds(
    lambda said: Structured("valid", json=json.dumps({"said": said})), _texts
) | st.builds(
    lambda said: Structured("invalid", code="SCHEMA_MISMATCH", message=said[:300]), _texts
)
_verdicts = st.builds(
    Verdict,
    status=st.sampled_from(TurnStatus),
    answer=_texts,
    finish=_texts,
    failure=st.none()
    | st.builds(Failure, name=st.just("UPSTREAM_ERROR"), message=_texts, condition=_texts),
    warnings=st.builds(lambda said, n: ((said[:20], said),) * n, _texts, _counts),
    tool_calls=st.builds(lambda call, n: (call,) * n, _calls, _counts),
    usage=st.just(Usage(10**15, 10**15, 10**15, 10**15, 10**15, 1e300)),
    files_changed=st.builds(lambda said, n: (said,) * n, _texts, _counts),
    pending=st.builds(lambda ask, n: (ask,) * n, _asks, _counts) | st.just(()),
    ask_times=st.builds(
        lambda name: {f"per_{name}": AskTimes(_NOW, _NOW), f"que_{name}": AskTimes(_NOW, _NOW)},
        _ids,
    ),
    retry=st.none() | st.builds(lambda said: RemoteStatus(type="retry", message=said), _texts),
    agent=_texts,
    model=_texts,
    resend_safety=st.sampled_from(["inspect_effects", None]),
    structured=st.none() | _structured,
    response_loop=st.just(ResponseLoop(10**9, 10**12, "same_failing_call")),
)
_sessions = st.builds(
    lambda session_id, said: replace(_session(session_id), directory=said, title=said),
    st.sampled_from([_LONGEST_ID, "ses_" + "d" * 26]),
    _texts,
)
_shown = st.builds(
    Shown, st.sampled_from([200, 20_000, 40_000]), st.sampled_from(["standard", "compact"])
)
_thorough = settings(
    max_examples=60,
    # to make the largest smaller takes longer than a test may
    phases=set(Step) - {Step.shrink, Step.explain},
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def _session(session_id: str = _LONGEST_ID) -> Session:
    return Session(session_id, "local", "i", "/repo", Phase.ACTIVE, 1, _NOW, _NOW)


def _turn(session_id: str) -> Turn:
    return Turn(session_id, 3, "msg_" + "b" * 60, None, Submission.RECORDED, _NOW, _NOW)


def _check(result: Result, *, spare: int = SPARE_CHARS) -> None:
    """Check the bounds of both halves, the shape, and that what was lost is named."""
    _SHAPE.validate(result)
    assert serialized_size(result) < MAX_RESULT_CHARS - spare + 1
    assert len(json.dumps(result["content"])) < MAX_RESULT_CHARS
    assert json.loads(json.dumps(result, ensure_ascii=False).encode()) == result
    assert bool(result.get("omittedFields")) == bool(result.get("truncated"))


def _check_turn(result: Result, session: Session, turn: Turn, verdict: Verdict) -> None:
    assert (result.get("sessionId"), result.get("threadId")) == (session.id, session.id)
    assert result.get("turnId") == turn.message_id
    assert f"[session {session.id} · turn" in result["content"], "the text is complete by itself"
    assert result.get("hint", "") in result["content"]
    for name in ("agent", "model", "directory", "finish"):
        assert len(str(result.get(name, ""))) <= 300
    listed = result.get("pendingApprovals", [])
    assert [ask["id"] for ask in listed] == [ask.id for ask in verdict.pending[: len(listed)]]
    assert all(ask["id"] in result["content"] for ask in listed)
    assert bool(listed) == bool(verdict.pending)
    lost = result.get("omittedFields", [])
    assert ("pendingApprovals" in lost) or len(listed) == len(verdict.pending)


@_thorough
@given(verdict=_verdicts, session=_sessions, shown=_shown)
def test_whatever_a_turn_did_both_halves_fit_and_keep_their_ids(
    verdict: Verdict, session: Session, shown: Shown
) -> None:
    turn = _turn(session.id)
    result = present_turn(session, turn, verdict, shown, now=_NOW)
    _check(result)
    _check_turn(result, session, turn, verdict)
    if shown.detail == "standard" and "toolCalls" not in result:
        assert "toolCalls" in result.get("omittedFields", [])
    # of a blank answer nothing is shown
    is_whole = not verdict.answer.strip() or verdict.answer in result["content"]
    assert is_whole or "content" in result.get("omittedFields", [])
    call = RepeatableCall("local", "😀" * 200, "digest", replayed=True, expires_at=_NOW)
    repeated = with_request(result, call)
    _check(repeated, spare=0)
    _check_turn(repeated, session, turn, verdict)


@_thorough
@given(verdict=_verdicts, session=_sessions, accepted=st.booleans())
def test_a_cancel_fits_too(verdict: Verdict, session: Session, accepted: bool) -> None:  # noqa: FBT001
    fault = InvalidArgumentError(verdict.answer)
    turn = _turn(session.id)
    cancelled = Cancelled(
        session,
        turn,
        verdict,
        accepted=accepted,
        already_done=False,
        fault=fault,
    )
    result = present_cancel(cancelled, Shown(40_000), now=_NOW)
    _check(result, spare=0)
    assert session.id in result["content"]
    assert result.get("nextAction") == result.get("hint")


_phases = st.sampled_from([Phase.ACTIVE, Phase.QUARANTINED, Phase.ENDING])


def _view(session: Session, phase: Phase, verdict: Verdict, trouble: str | None) -> View:
    """Return a session as it may stand; `trouble`: what OpenCode said instead of an answer."""
    if phase is Phase.ENDING:
        ending = Ending(EndAction.DELETE, _NOW, 7, last_error=trouble or "x", next_at=_NOW)
        return View(replace(session, phase=phase, ending=ending), _turn(session.id), None)
    if trouble is not None and phase is Phase.ACTIVE:
        return View(session, _turn(session.id), None, trouble)
    return View(replace(session, phase=phase), _turn(session.id), verdict)


@settings(_thorough, max_examples=40)
@given(
    verdicts=st.lists(_verdicts, min_size=1, max_size=4),
    session=_sessions,
    phase=_phases,
    trouble=st.none() | _texts,
    count=st.sampled_from([1, 5, 16]),
    shown=_shown,
)
def test_a_batch_fits_whatever_its_turns_did(  # noqa: PLR0913, PLR0917 - what is drawn
    verdicts: list[Verdict],
    session: Session,
    phase: Phase,
    trouble: str | None,
    count: int,
    shown: Shown,
) -> None:
    members = []
    for n in range(count):
        reference = f"{session.id[:-2]}{n:02}"
        view = _view(replace(session, id=reference), phase, verdicts[n % len(verdicts)], trouble)
        members.append(Member(reference, present_view(view, shown, now=_NOW), view))
    fault = present_error(SessionNotFoundError("x" * 5_000, session_id=_LONGEST_ID))
    members[-1] = Member(_LONGEST_ID, fault)
    result = present_batch(_ENGINE, members, shown, wait_for="any", is_met=True)
    _check(result, spare=0)
    entries = result.get("results", [])
    assert len(entries) == count
    for member, entry in zip(members, entries, strict=True):
        assert member.reference in result["content"]
        if member.view is not None:
            assert entry.get("sessionId") == member.reference
            assert member.reference in entry["content"]
        listed = entry.get("pendingApprovals", [])
        assert {ask["id"] for ask in listed} <= {
            ask.id for verdict in verdicts for ask in verdict.pending
        }
        assert bool(entry.get("omittedFields")) == bool(entry.get("truncated"))
        assert result.get("truncated") or not entry.get("truncated")


def _batch(answers: list[str], shown: Shown) -> Result:
    members = []
    for n, answer in enumerate(answers):
        session = _session(f"ses_{n:026}")
        view = View(session, _turn(session.id), Verdict(TurnStatus.COMPLETED, answer=answer))
        members.append(Member(session.id, present_view(view, shown, now=_NOW), view))
    return present_batch(_ENGINE, members, shown, wait_for="all", is_met=True)


def _batch_of_16(verdict: Verdict | None, because: str | None = None, *, is_met: bool) -> Result:
    """Return a batch of the longest ids, checked, in which all turns stand the same."""
    shown = Shown(20_000)
    members = []
    for session_id in _LONGEST_IDS:
        session = _session(session_id)
        view = View(session, _turn(session.id), verdict, because)
        members.append(Member(session.id, present_view(view, shown, now=_NOW), view))
    result = present_batch(_ENGINE, members, shown, wait_for="all", is_met=is_met)
    _check(result, spare=0)
    return result


def test_in_a_batch_errors_fit_whatever_they_are_made_of() -> None:
    """Ours: what stands beside an error's message takes room too."""
    failure = Failure("UPSTREAM_ERROR", "m" * 300, condition="😀" * 300)
    verdict = Verdict(TurnStatus.FAILED, failure=failure, answer="A" * 10_000)
    result = _batch_of_16(verdict, is_met=True)
    assert len(result["results"]) == len(_LONGEST_IDS)
    for entry in result["results"]:
        assert entry["error"]["name"] == "UPSTREAM_ERROR"
        assert "condition" in entry["error"] or "error.condition" in entry["omittedFields"]


def test_in_a_batch_of_turns_that_all_retry_each_still_says_which_call_comes_next() -> None:
    retry = RemoteStatus(type="retry", message="😀" * 300)
    verdict = Verdict(TurnStatus.RUNNING, retry=retry)
    result = _batch_of_16(verdict, is_met=False)
    for entry in result["results"]:
        assert "OpenCode retries the provider: 😀" in entry["content"]
        assert "The turn goes on." in entry["content"]


def test_in_a_batch_where_nothing_else_fits_each_session_is_named_with_where_there_is_more() -> (
    None
):
    result = _batch_of_16(None, "😀" * 2_000, is_met=False)
    assert result["pendingIds"] == _LONGEST_IDS
    for session_id, entry in zip(_LONGEST_IDS, result["results"], strict=True):
        assert (entry["status"], entry["omittedFields"]) == ("unknown", ["content"])
        assert session_id in entry["content"]
        assert "opencode-status" in entry["content"]


def test_in_a_batch_who_needs_less_leaves_more_to_the_others() -> None:
    """Ours: 16 equal shares would cut the one long answer at some 1,000 characters."""
    long = "L" * 12_000
    result = _batch(["short"] * 15 + [long], Shown(20_000))
    assert long in result.get("results", [])[-1]["content"]
    assert long in result["content"]
    assert result.get("truncated") in {None, False}


def test_in_a_batch_the_long_answers_get_the_same() -> None:
    result = _batch(["short", "A" * 30_000, "B" * 90_000, "C" * 15_000], Shown(40_000))
    sizes = [entry["content"].count(c) for entry, c in zip(result["results"], "sABC", strict=True)]
    assert max(sizes[1:]) - min(sizes[1:]) < 10
    assert sizes[1] > 6_000
    assert serialized_size(result) > MAX_RESULT_CHARS - SPARE_CHARS - 1_000, "no room is wasted"
    assert [entry.get("truncated") for entry in result["results"]] == [False, True, True, True]
    assert result.get("omittedFields") == ["results"]


def test_in_a_batch_each_answer_is_cut_at_what_the_call_asks_for() -> None:
    result = _batch(["A" * 1_000, "B" * 100], Shown(300, "compact"))
    first, second = result.get("results", [])
    assert 200 < first["content"].count("A") < 300
    assert second["content"].count("B") == 100
    assert "elapsedMs" not in first


@_thorough
@given(
    said=_texts,
    count=st.sampled_from([0, 1, 100]),
    session_id=_ids,
    detail=st.booleans(),
    owners=st.booleans(),
)
def test_a_page_ends_where_it_is_full_and_the_next_goes_on_without_a_gap(
    said: str, count: int, session_id: str, *, detail: bool, owners: bool
) -> None:
    sessions = [
        replace(
            _session(f"ses_{session_id}{n:03}"),
            title=said,
            directory=said,
            owner="token:" + "o" * 100,
        )
        for n in range(count)
    ]
    seen: list[str] = []
    while True:
        lines = [Line(session, "idle", 0) for session in sessions[len(seen) :]]
        page = present_page(lines, offset=len(seen), total=count, owners=owners, is_compact=detail)
        _check(page)
        listed = [one["sessionId"] for one in page.get("sessions", [])]
        assert listed or not lines
        # each is one line of the text, whatever its title holds
        assert [row.split(" · ")[0] for row in page["content"].split("\n")[1:]][
            : len(listed)
        ] == listed
        seen += listed
        if not page.get("hasMore"):
            break
        assert page.get("nextOffset") == len(seen)
        assert page.get("omittedFields") == ["sessions"]
    assert seen == [session.id for session in sessions]


@_thorough
@given(said=_texts, action=st.sampled_from(EndAction))
def test_errors_and_ends_fit_too(said: str, action: EndAction) -> None:
    end = Unconfirmed(_LONGEST_ID, action, said, InvalidArgumentError(said))
    results = [
        present_unconfirmed(end, elapsed_ms=10**12, advice=said),
        present_error(InvalidArgumentError(said, session_id=_LONGEST_ID), said),
        error_result("INVALID_ARGUMENT", said),
        present_view(
            View(replace(_session(), directory=said), None, None, said), Shown(200), now=_NOW
        ),
    ]
    for result in results:
        _check(result)
        assert "error" not in result or result["error"]["name"] in result["content"]
    assert _LONGEST_ID in results[0]["content"]
    assert _LONGEST_ID in results[1]["content"]


def test_nothing_leaves_that_is_too_large() -> None:
    """Ours: the net below all results, whoever makes them."""
    result = error_result("INTERNAL", "x")
    result["content"] = "a" * 60_000
    sent = to_tool_result(result)
    structured = sent.structured_content
    assert structured is not None
    _check(cast("Result", structured), spare=0)
    assert [block.text for block in sent.content if block.type == "text"] == [structured["content"]]
    assert structured["error"] == result["error"]

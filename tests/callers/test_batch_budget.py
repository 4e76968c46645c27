"""Contract §3: a batch stays in the bounds of a result, and its turns share what room there is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_mcp.callers.answers import present_error
from opencode_mcp.callers.batch_result import Member, present_batch
from opencode_mcp.callers.presenting import present_view
from opencode_mcp.callers.shown import Shown
from opencode_mcp.callers.sizing import MAX_RESULT_CHARS, SPARE_CHARS, serialized_size
from opencode_mcp.clock import Clock
from opencode_mcp.engine.failures import Failure
from opencode_mcp.engine.outcome import TurnStatus, Verdict
from opencode_mcp.engine.overview import View
from opencode_mcp.errors import SessionNotFoundError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode.models import RemoteStatus
from opencode_mcp.records import EndAction, Ending, Session
from tests.callers.budgets import (
    LONGEST_ID,
    NOW,
    SESSIONS,
    SHOWN,
    TEXTS,
    THOROUGH,
    VERDICTS,
    a_session,
    a_turn,
    check,
)

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.engine import Engine

# a failure is to be told as what it is, however large its example
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

#: of a whole batch
_LONGEST_IDS = [f"{LONGEST_ID[:-2]}{n:02}" for n in range(16)]
_ENGINE = cast("Engine", SimpleNamespace(clock=Clock()))
_phases = st.sampled_from([Phase.ACTIVE, Phase.QUARANTINED, Phase.ENDING])


def _view(session: Session, phase: Phase, verdict: Verdict, trouble: str | None) -> View:
    """Return a session as it may stand; `trouble`: what OpenCode said instead of an answer."""
    if phase is Phase.ENDING:
        ending = Ending(EndAction.DELETE, NOW, 7, last_error=trouble or "x", next_at=NOW)
        return View(replace(session, phase=phase, ending=ending), a_turn(session.id), None)
    if trouble is not None and phase is Phase.ACTIVE:
        return View(session, a_turn(session.id), None, trouble)
    return View(replace(session, phase=phase), a_turn(session.id), verdict)


@settings(THOROUGH, max_examples=40)
@given(
    verdicts=st.lists(VERDICTS, min_size=1, max_size=4),
    session=SESSIONS,
    phase=_phases,
    trouble=st.none() | TEXTS,
    count=st.sampled_from([1, 5, 16]),
    shown=SHOWN,
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
        members.append(Member(reference, present_view(view, shown, now=NOW), view))
    fault = present_error(SessionNotFoundError("x" * 5_000, session_id=LONGEST_ID))
    members[-1] = Member(LONGEST_ID, fault)
    result = present_batch(_ENGINE, members, shown, wait_for="any", is_met=True)
    check(result, spare=0)
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
        session = a_session(f"ses_{n:026}")
        view = View(session, a_turn(session.id), Verdict(TurnStatus.COMPLETED, answer=answer))
        members.append(Member(session.id, present_view(view, shown, now=NOW), view))
    return present_batch(_ENGINE, members, shown, wait_for="all", is_met=True)


def _batch_of_16(verdict: Verdict | None, because: str | None = None, *, is_met: bool) -> Result:
    """Return a batch of the longest ids, checked, in which all turns stand the same."""
    shown = Shown(20_000)
    members = []
    for session_id in _LONGEST_IDS:
        session = a_session(session_id)
        view = View(session, a_turn(session.id), verdict, because)
        members.append(Member(session.id, present_view(view, shown, now=NOW), view))
    result = present_batch(_ENGINE, members, shown, wait_for="all", is_met=is_met)
    check(result, spare=0)
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

"""Contract §3: whatever turns did, whatever their callers ask for, a result stays in its bounds.

Under 45,000 characters as `structuredContent` and as text, no id cut, and always said.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_mcp.callers.answers import error_result, present_error, present_unconfirmed
from opencode_mcp.callers.cancels import present_cancel
from opencode_mcp.callers.listing import present_page
from opencode_mcp.callers.presenting import present_turn, present_view
from opencode_mcp.callers.request_ids import with_request
from opencode_mcp.callers.shown import Shown
from opencode_mcp.callers.tool import to_tool_result
from opencode_mcp.engine.cancelling import Cancelled
from opencode_mcp.engine.ends import Unconfirmed
from opencode_mcp.engine.overview import Line, View
from opencode_mcp.engine.requests import RepeatableCall
from opencode_mcp.errors import InvalidArgumentError
from opencode_mcp.records import EndAction, Session, Turn
from tests.callers.budgets import (
    IDS,
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
    from opencode_mcp.engine.outcome import Verdict

# a failure is to be told as what it is, however large its example
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


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


@THOROUGH
@given(verdict=VERDICTS, session=SESSIONS, shown=SHOWN)
def test_whatever_a_turn_did_both_halves_fit_and_keep_their_ids(
    verdict: Verdict, session: Session, shown: Shown
) -> None:
    turn = a_turn(session.id)
    result = present_turn(session, turn, verdict, shown, now=NOW)
    check(result)
    _check_turn(result, session, turn, verdict)
    if shown.detail == "standard" and "toolCalls" not in result:
        assert "toolCalls" in result.get("omittedFields", [])
    # of a blank answer nothing is shown
    is_whole = not verdict.answer.strip() or verdict.answer in result["content"]
    assert is_whole or "content" in result.get("omittedFields", [])
    call = RepeatableCall("local", "😀" * 200, "digest", replayed=True, expires_at=NOW)
    repeated = with_request(result, call)
    check(repeated, spare=0)
    _check_turn(repeated, session, turn, verdict)


@THOROUGH
@given(verdict=VERDICTS, session=SESSIONS, accepted=st.booleans())
def test_a_cancel_fits_too(verdict: Verdict, session: Session, accepted: bool) -> None:  # noqa: FBT001
    fault = InvalidArgumentError(verdict.answer)
    turn = a_turn(session.id)
    cancelled = Cancelled(
        session,
        turn,
        verdict,
        accepted=accepted,
        already_done=False,
        fault=fault,
    )
    result = present_cancel(cancelled, Shown(40_000), now=NOW)
    check(result, spare=0)
    assert session.id in result["content"]
    assert result.get("nextAction") == result.get("hint")


@THOROUGH
@given(
    said=TEXTS,
    count=st.sampled_from([0, 1, 100]),
    session_id=IDS,
    detail=st.booleans(),
    owners=st.booleans(),
)
def test_a_page_ends_where_it_is_full_and_the_next_goes_on_without_a_gap(
    said: str, count: int, session_id: str, *, detail: bool, owners: bool
) -> None:
    sessions = [
        replace(
            a_session(f"ses_{session_id}{n:03}"),
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
        check(page)
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


@THOROUGH
@given(said=TEXTS, action=st.sampled_from(EndAction))
def test_errors_and_ends_fit_too(said: str, action: EndAction) -> None:
    end = Unconfirmed(LONGEST_ID, action, said, InvalidArgumentError(said))
    results = [
        present_unconfirmed(end, elapsed_ms=10**12, advice=said),
        present_error(InvalidArgumentError(said, session_id=LONGEST_ID), said),
        error_result("INVALID_ARGUMENT", said),
        present_view(
            View(replace(a_session(), directory=said), None, None, said), Shown(200), now=NOW
        ),
    ]
    for result in results:
        check(result)
        assert "error" not in result or result["error"]["name"] in result["content"]
    assert LONGEST_ID in results[0]["content"]
    assert LONGEST_ID in results[1]["content"]


def test_nothing_leaves_that_is_too_large() -> None:
    """Ours: the net below all results, whoever makes them."""
    result = error_result("INTERNAL", "x")
    result["content"] = "a" * 60_000
    sent = to_tool_result(result)
    structured = sent.structured_content
    assert structured is not None
    check(cast("Result", structured), spare=0)
    assert [block.text for block in sent.content if block.type == "text"] == [structured["content"]]
    assert structured["error"] == result["error"]

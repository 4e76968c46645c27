"""Texts that count: one of a thing is told as one, and of none nothing is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opencode_mcp.callers.answers import present_end
from opencode_mcp.callers.listing import present_page
from opencode_mcp.engine.ends import Ended
from opencode_mcp.engine.overview import Line
from opencode_mcp.records import EndAction
from tests.callers.budgets import a_session

_GONE = "Deleted and confirmed: OpenCode does not know it any more."


_NOTHING = Ended(
    "ses_1",
    EndAction.DELETE,
    aborted_running_turn=False,
    rejected_permissions=0,
    rejected_questions=0,
    ended_subsessions=0,
)
_MUCH = replace(
    _NOTHING,
    aborted_running_turn=True,
    rejected_permissions=1,
    rejected_questions=2,
    ended_subsessions=1,
)
_FACTS = (
    "The running turn was stopped; 1 permission rejected; 2 questions rejected;"
    " 1 sub-session ended. "
)


@pytest.mark.parametrize(
    ("end", "facts"),
    [
        (_NOTHING, ""),
        (_MUCH, _FACTS),
        (replace(_NOTHING, rejected_permissions=2), "2 permissions rejected. "),
    ],
)
def test_what_an_end_took_is_a_sentence(end: Ended, facts: str) -> None:
    said = present_end(end, elapsed_ms=1)["content"]
    assert said == f"session ses_1 · status: ended (delete). {facts}{_GONE}"


def test_a_list_counts_sessions_and_turns() -> None:
    one = replace(a_session("ses_1"), turn_count=1)
    two = replace(a_session("ses_2"), turn_count=2)
    said = present_page([Line(one, "idle", 0)], 1, offset=0)["content"]
    both = present_page([Line(one, "idle", 0), Line(two, "idle", 0)], 2, offset=0)["content"]
    assert said.splitlines() == ["1 tracked session", "ses_1 · idle · 1 turn · /repo"]
    assert both.splitlines()[0] == "2 tracked sessions"
    assert both.splitlines()[2] == "ses_2 · idle · 2 turns · /repo"

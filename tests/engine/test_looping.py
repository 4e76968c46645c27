"""The watchdog, from steps alone: what is a loop, and what only looks like one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opencode_mcp.engine.looping import find_loop
from tests.engine.make import ABORTED, START_MS, assistant, invalid, reasoning, text, tool

if TYPE_CHECKING:
    from opencode_mcp.opencode.models import Message

LIMIT = 6
Parts = list[dict[str, object]]

_EMPTY: Parts = []
_HTML: Parts = [text("  <!DOCTYPE HTML><p>sign in")]
_WRONG_ARGUMENTS = tool(
    "error", "read", error="The read tool was called with invalid arguments: Missing key"
)
_NO_FILE = tool("error", "read", error="File not found", input={"filePath": "/a"})
_OTHER_FILE = tool("error", "read", error="File not found", input={"filePath": "/b"})


def _steps(*kinds: Parts, finish: str | None = "tool-calls") -> list[Message]:
    return [
        assistant(*parts, finish=finish, at_ms=START_MS + 1000 * number)
        for number, parts in enumerate(kinds)
    ]


@pytest.mark.parametrize(
    ("kinds", "pattern"),
    [
        pytest.param([_EMPTY] * LIMIT, "empty", id="empty"),
        pytest.param([[text(" \n")]] * LIMIT, "empty", id="white-space"),
        pytest.param([[reasoning("hm")]] * LIMIT, "empty", id="reasoning-only"),
        pytest.param([_HTML] * LIMIT, "html", id="doctype"),
        pytest.param([[text("<html><body>")]] * LIMIT, "html", id="bare-html"),
        pytest.param([[invalid()]] * LIMIT, "malformed_tool_call", id="unknown-tool"),
        pytest.param([[_WRONG_ARGUMENTS]] * LIMIT, "malformed_tool_call", id="wrong-arguments"),
        pytest.param([_EMPTY, _HTML] * 3, "mixed", id="mixed"),
        pytest.param([[_NO_FILE]] * LIMIT, "same_failing_call", id="same-failing-call"),
        pytest.param(
            [[text(f"try {n}"), _NO_FILE] for n in range(LIMIT)],
            "same_failing_call",
            id="same-failing-call-with-new-words",
        ),
        pytest.param([[text("I will do it.")]] * LIMIT, "same_answer", id="same-answer"),
        pytest.param(
            [[tool("completed")], *([_EMPTY] * LIMIT)], "empty", id="after-something-good"
        ),
    ],
)
def test_answers_without_progress_are_a_loop(kinds: list[Parts], pattern: str) -> None:
    loop = find_loop(_steps(*kinds), LIMIT)
    assert loop is not None
    assert (loop.count, loop.pattern) == (LIMIT, pattern)
    assert loop.window_ms == 5100


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param([_EMPTY] * (LIMIT - 1), id="too-few"),
        pytest.param([*([_EMPTY] * 10), [tool("completed")]], id="then-progress"),
        pytest.param([*([_EMPTY] * 3), [tool("completed")], *([_EMPTY] * 3)], id="interrupted"),
        pytest.param([[tool("completed", input={"a": 1})]] * 20, id="a-poll-with-results"),
        pytest.param([[_NO_FILE], [_OTHER_FILE]] * 10, id="other-arguments"),
        pytest.param([[_NO_FILE, tool("completed")]] * 20, id="one-of-two-works"),
        pytest.param([[invalid(), tool("completed")]] * 20, id="one-of-two-is-a-call"),
        pytest.param([[text(f"part {n}")] for n in range(20)], id="new-words"),
    ],
)
def test_progress_is_no_loop(kinds: list[Parts]) -> None:
    assert find_loop(_steps(*kinds), LIMIT) is None


def test_a_provider_that_is_retried_is_no_loop() -> None:
    """Facts 8.5: a back-off is one message, and one that was cut in it has no finish (4.4)."""
    assert find_loop(_steps(*([_EMPTY] * 20), finish=None), LIMIT) is None


def test_the_step_under_way_does_not_hide_a_loop() -> None:
    steps = [*_steps(*([_EMPTY] * LIMIT)), assistant(completed=False, finish=None)]
    assert find_loop(steps, LIMIT) is not None


def test_the_step_that_was_cut_for_it_does_not_count() -> None:
    steps = [*_steps(*([_EMPTY] * LIMIT)), assistant(error=ABORTED, finish=None)]
    loop = find_loop(steps, 1)
    assert loop is not None
    assert loop.count == LIMIT


def test_nought_switches_it_off() -> None:
    assert find_loop(_steps(*([_EMPTY] * 50)), 0) is None


def test_no_steps_are_no_loop() -> None:
    assert find_loop([], 1) is None

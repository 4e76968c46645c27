"""Cutting to size: whatever a turn did, a result stays under its limit and ids stay whole."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from opencode_mcp.callers.sizing import (
    MAX_RESULT_CHARS,
    clip,
    fit,
    serialized_size,
    short,
    text_size,
    written_size,
)

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import Called

_SESSION = "ses_" + "a" * 26


@given(st.text(max_size=3000), st.integers(min_value=60, max_value=2000))
def test_a_clipped_text_stays_under_its_limit(text: str, limit: int) -> None:
    clipped, cut = clip(text, limit)
    assert len(json.dumps(clipped, ensure_ascii=False)) - 2 <= limit
    assert cut == (clipped != text)


def test_a_clipped_text_keeps_head_and_tail_and_says_how_much_is_left_out() -> None:
    clipped, _ = clip("A" * 500 + "Z" * 500, 300)
    assert clipped.startswith("AAA")
    assert clipped.endswith("ZZZ")
    left_out = 1000 - clipped.count("A") - clipped.count("Z")
    assert f"{left_out} characters left out" in clipped


@given(
    content=st.text(min_size=0, max_size=400).map(lambda text: text * 300),
    calls=st.integers(min_value=0, max_value=200),
)
def test_a_result_always_fits_and_keeps_its_id(content: str, calls: int) -> None:
    call: Called = {"tool": "bash", "status": "completed", "title": "t" * 300, "reason": "r" * 300}
    result: Result = {
        "kind": "turn",
        "status": "completed",
        "content": content,
        "sessionId": _SESSION,
        "toolCalls": [call] * calls,
    }
    fitted = fit(result)
    assert serialized_size(fitted) < MAX_RESULT_CHARS
    assert fitted.get("sessionId") == _SESSION
    if fitted != result:
        assert fitted.get("truncated") is True
        assert fitted.get("omittedFields")


@given(text=st.text(st.sampled_from("a😀ü\x01")), limit=st.integers(2, 300))
def test_a_short_text_is_bounded_in_its_longest_spelling_too(text: str, limit: int) -> None:
    shown = short(text * 50, limit)
    assert written_size(shown) <= limit
    assert text_size(shown) <= 3 * limit + text_size("…")

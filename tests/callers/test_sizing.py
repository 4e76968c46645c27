"""Cutting to size: whatever a turn did, a result stays under its limit and ids stay whole."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from opencode_mcp.callers.sizing import MAX_RESULT_CHARS, clip, fit, serialized_size

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import Called, Listed

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


def test_a_page_that_is_too_long_ends_earlier_without_a_gap() -> None:
    sessions: list[Listed] = [
        {
            "sessionId": f"ses_{n}",
            "threadId": f"ses_{n}",
            "directory": "/d" * 150,
            "title": "t" * 300,
            "status": "idle",
        }
        for n in range(100)
    ]
    result: Result = {
        "kind": "sessions",
        "status": "ok",
        "content": "\n".join(["100 sessions", *(f"ses_{n} · idle" for n in range(100))]),
        "sessions": sessions,
        "total": 100,
        "offset": 0,
        "hasMore": False,
    }
    fitted = fit(result)
    kept = len(fitted.get("sessions", []))
    assert serialized_size(fitted) < MAX_RESULT_CHARS
    assert 0 < kept < len(sessions)
    assert (fitted.get("nextOffset"), fitted.get("hasMore")) == (kept, True)
    assert f"ses_{kept - 1} " in fitted["content"]
    assert f"ses_{kept} " not in fitted["content"]

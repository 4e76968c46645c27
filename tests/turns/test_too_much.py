"""Arguments beyond what the database, JSON or a result can hold are refused, and by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from opencode_mcp.callers.arguments_codex import CodexArguments, CodexReplyArguments
from opencode_mcp.callers.codex_answers import to_codex_result

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result
    from tests.support.bridge import Bridge

_HUGE = 2**63
_HALF = "ses_\ud800"
_REFUSED: Result = {"kind": "error", "status": "error", "content": "INVALID_ARGUMENT: no"}


@pytest.mark.parametrize(
    ("tool", "name", "more"),
    [
        ("opencode", "timeout-seconds", {"prompt": "SAY:x"}),
        ("opencode-status", "offset", {}),
        ("opencode-info", "offset", {"section": "models"}),
        ("opencode-output", "turn", {"sessionId": "ses_1"}),
        ("opencode-output", "offset", {"sessionId": "ses_1", "turn": 1}),
    ],
)
@pytest.mark.parametrize("number", [_HUGE, str(_HUGE)], ids=["int", "str"])
async def test_a_number_that_nothing_can_hold_is_refused(
    bridge: Bridge, tool: str, name: str, more: dict[str, Any], number: object
) -> None:
    answer = await bridge.call_exactly(tool, {**more, name: number})
    assert answer.error == "INVALID_ARGUMENT"
    assert answer.text.startswith(f"INVALID_ARGUMENT: {name}: should be less than")


@pytest.mark.parametrize("character", ["\x01", "😀"])
@pytest.mark.parametrize("detail", ["standard", "compact"])
async def test_ids_that_no_result_can_hold_are_refused_together(
    bridge: Bridge, character: str, detail: str
) -> None:
    """Contract §3: an id is never cut, and a result is never larger than its limit."""
    ids = [character * 190 + str(number) for number in range(16)]
    answer = await bridge.call("opencode-status", ids=ids, detail=detail)
    assert answer.error == "INVALID_ARGUMENT"
    assert "fewer at once" in answer.text
    few = await bridge.call("opencode-status", ids=ids[:2], detail=detail)
    assert few.structured["readyIds"] == ids[:2]


@pytest.mark.parametrize("name", ["prompt", "base-instructions", "cwd", "model"])
def test_codex_takes_no_half_of_a_surrogate_pair(name: str) -> None:
    """The database could not store it, after the session was made."""
    with pytest.raises(ValidationError, match="surrogate"):
        CodexArguments.model_validate({"prompt": "x", name: _HALF})


def test_nor_does_codex_reply_and_its_refusal_can_be_sent() -> None:
    arguments = {"prompt": "x", "threadId": _HALF}
    with pytest.raises(ValidationError, match="surrogate"):
        CodexReplyArguments.model_validate(arguments)
    told = to_codex_result(_REFUSED, arguments)
    assert told.structured_content == {"threadId": "ses_?", "content": _REFUSED["content"]}

"""What counts as the same call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_mcp.callers.arguments import ReplyArguments, StartArguments
from opencode_mcp.callers.request_ids import digest_of

if TYPE_CHECKING:
    import random

_TEXT = st.text(min_size=1).filter(lambda text: bool(text.strip()))
_STARTS = st.fixed_dictionaries(
    {"prompt": _TEXT},
    optional={
        "cwd": st.text(),
        "model": st.just("a/b"),
        "agent": st.text(min_size=1, max_size=5),
        "title": st.text(min_size=1, max_size=5),
        "base-instructions": st.text(),
        "developer-instructions": st.text(),
        "sandbox": st.sampled_from(["read-only", "workspace-write"]),
        "approval-policy": st.sampled_from(["never", "caller"]),
        "timeout-seconds": st.integers(1, 9999),
    },
)


def digest(
    arguments: dict[str, Any], *, tool: str = "opencode", owner: str = "local", name: str = "id"
) -> str:
    model = StartArguments if tool == "opencode" else ReplyArguments
    return digest_of(tool, model.model_validate(arguments), owner, name)


@given(_STARTS, st.randoms())
def test_order_absent_null_and_numbers_as_text_make_no_difference(
    arguments: dict[str, Any], order: random.Random
) -> None:
    items = list(arguments.items())
    order.shuffle(items)
    otherwise = {"variant": None, **dict(items), "cwd": arguments.get("cwd")}
    if "timeout-seconds" in arguments:
        otherwise["timeout-seconds"] = str(arguments["timeout-seconds"])
    assert digest(otherwise) == digest(arguments)


@given(_STARTS, st.integers(0, 600))
def test_how_long_a_call_watches_makes_no_difference(arguments: dict[str, Any], wait: int) -> None:
    assert digest({**arguments, "wait-seconds": wait}) == digest(arguments)
    assert digest({**arguments, "request-id": "x"}) == digest(arguments)


@given(_STARTS, _STARTS)
def test_other_arguments_have_another_digest(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (digest(one) == digest(other)) is (one == other)


@pytest.mark.parametrize("name", ["threadId", "conversationId"])
def test_a_session_is_the_same_by_each_of_its_three_names(name: str) -> None:
    call = {"prompt": "x"}
    tool = "opencode-reply"
    same = digest({**call, "sessionId": "ses_1"}, tool=tool)
    assert digest({**call, name: "ses_1"}, tool=tool) == same
    assert digest({**call, name: "ses_2"}, tool=tool) != same


def test_tool_owner_and_id_are_part_of_it() -> None:
    """Equal prompts of two callers, or under two ids, do not show as equal."""
    call = {"prompt": "x"}
    digests = {
        digest(call),
        digest(call, owner="token:alice"),
        digest(call, name="other"),
        digest({**call, "sessionId": "ses_1"}, tool="opencode-reply"),
    }
    assert len(digests) == 4

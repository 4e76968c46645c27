"""What of OpenCode's messages is read: tolerant of what we do not know, bounded in what is kept."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from opencode_mcp.opencode.calls import Answer, Call, CallKind, decode
from opencode_mcp.opencode.models import Message, Part

_CALL = Call(CallKind.READ, "GET", "/session/ses_1/message")
_TEXTS = TypeAdapter(list[str])
_json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
_names = st.sampled_from(
    ["filepath", "filediff", "files", "interrupted", "output", "providerExecuted"]
)


def _part(**state: object) -> Part:
    fields = {"id": "prt_1", "type": "tool", "tool": "any", "state": {"status": "error", **state}}
    return Part.model_validate(fields)


@given(st.dictionaries(_names, _json_values), _json_values)
def test_no_metadata_of_a_tool_makes_a_page_unreadable(
    metadata: dict[str, object], given_input: object
) -> None:
    part = _part(metadata=metadata, input=given_input)
    assert part.state is not None
    assert "" not in part.state.metadata.files


@pytest.mark.parametrize("metadata", [None, 3, [], "text"])
def test_metadata_that_is_no_object_is_ignored(metadata: object) -> None:
    state = _part(metadata=metadata).state
    assert state is not None
    assert state.metadata.files == ()


def test_only_the_end_of_an_output_is_kept() -> None:
    state = _part(output="x" * 1_000_000 + "end", metadata={"output": "y" * 1_000_000}).state
    assert state is not None
    assert (len(state.output), len(state.metadata.output)) == (2000, 2000)
    assert state.output.endswith("end")


def test_titles_faults_and_lists_of_files_are_bounded() -> None:
    many = {"files": [{"filePath": f"/f{number}"} for number in range(5000)]}
    state = _part(title="t" * 10_000, error="e" * 10_000, metadata=many).state
    assert state is not None
    assert (len(state.title or ""), len(state.error or "")) == (4000, 4000)
    assert len(state.metadata.files) == 1000


def test_equal_inputs_are_told_from_others_without_being_kept() -> None:
    first, same, other = (
        _part(input=given_input).state
        for given_input in ({"a": 1, "b": "secret"}, {"b": "secret", "a": 1}, {"a": 2})
    )
    assert first is not None
    assert same is not None
    assert other is not None
    assert first.input_digest == same.input_digest != other.input_digest
    assert "secret" not in repr(first)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        pytest.param(r"\ud83d", "\ufffd", id="half-an-emoji"),
        pytest.param(r"\ude00", "\ufffd", id="the-other-half"),
        pytest.param(r"a\ud83d\ude00b", "a😀b", id="a-whole-one"),
        pytest.param(r"\ud83d\ud83d\ude00", "\ufffd😀", id="half-before-a-whole-one"),
        pytest.param(r"\\ud83d", r"\ud83d", id="an-escaped-backslash"),
        pytest.param(r"\\\ud83d", "\\\ufffd", id="a-backslash-and-a-half"),
        pytest.param(r"\uD83D\n\"", '\ufffd\n"', id="upper-case-and-other-escapes"),
    ],
)
def test_half_an_emoji_does_not_make_a_page_unreadable(sent: str, read: str) -> None:
    """OpenCode: it sends lone surrogates where a text was cut within an emoji (tried)."""
    body = f'["{sent}"]'.encode()
    assert decode(_CALL, Answer(body, None), _TEXTS) == [read]


@given(st.lists(st.text()))
def test_whole_texts_are_read_as_they_are(texts: list[str]) -> None:
    for ascii_only in (True, False):
        body = json.dumps(texts, ensure_ascii=ascii_only).encode()
        assert decode(_CALL, Answer(body, None), _TEXTS) == texts


def test_counts_may_be_numbers() -> None:
    """`/doc` of 1.18.33 calls tokens numbers."""
    info = {
        "id": "msg_1",
        "sessionID": "ses_1",
        "role": "assistant",
        "time": {"created": 1},
        "tokens": {"input": 1.0, "output": 2.6, "reasoning": 0, "cache": {"read": 3, "write": 4}},
    }
    tokens = Message.model_validate({"info": info}).info.tokens
    assert (tokens.input, tokens.output, tokens.cache.write) == (1, 3, 4)

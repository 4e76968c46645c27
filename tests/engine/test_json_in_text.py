"""Which JSON value an answer means: a table, and what holds for every value and all noise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_mcp.engine.json_in_text import MAX_DEPTH, Found, Lack, find_json, is_deeper, to_json

FOUND: dict[str, tuple[str, Any]] = {
    "whole-object": ('{"a": 1}', {"a": 1}),
    "whole-array": (" [1, 2]\n", [1, 2]),
    "whole-number": ("42", 42),
    "whole-null": ("null", None),
    "whole-text": ('"it is"', "it is"),
    "labelled": ('Done.\n```json\n{"a": 1}\n```\nBye.', {"a": 1}),
    "label-in-capitals": ('```JSON\n{"a": 1}\n```', {"a": 1}),
    "label-with-more": ('```json title="x.json"\n{"a": 1}\n```', {"a": 1}),
    "labelled-scalar": ("so\n```json\n7\n```", 7),
    "tildes": ('x\n~~~json\n{"a": 1}\n~~~\n', {"a": 1}),
    "indented": ('- so:\n  ```json\n  {"a": 1}\n  ```', {"a": 1}),
    "carriage-returns": ('so:\r\n```json\r\n{"a": 1}\r\n```\r\n', {"a": 1}),
    "the-last-labelled": ('```json\n{"a": 1}\n```\nno:\n```json\n{"a": 2}\n```', {"a": 2}),
    "labelled-before-others": ('```json\n{"a": 1}\n```\nas\n```\n{"b": 2}\n```', {"a": 1}),
    "labelled-before-noise": ('```json\n{"a": 1}\n```\nlike {"b": 2}', {"a": 1}),
    "closed-on-its-own-line": ('```json\n{"a": 1}```\nBye', {"a": 1}),
    "closed-late": ('```json\n{"a": 1}```\nrun:\n```sh\nls\n```', {"a": 1}),
    "never-closed": ('```json\n{"a": 1}', {"a": 1}),
    "on-one-line": ('so ```json {"a": 1}``` it is', {"a": 1}),
    "no-label": ('so:\n```\n{"a": 1}\n```\nand\n```sh\nls\n```', {"a": 1}),
    "the-last-without-label": ("```\n[1]\n```\n```\n[2]\n```", [2]),
    "another-label": ('```javascript\n{"a": 1}\n```', {"a": 1}),
    "longer-fence-around": ('````md\n```json\n{"a": 1}\n```\n````', {"a": 1}),
    "in-prose": ('The answer is {"a": {"b": [1]}}, as asked.', {"a": {"b": [1]}}),
    "the-last-in-prose": ('first {"a": 1}, better {"a": 2}.', {"a": 2}),
    "object-before-reference": ('{"a": 1} is true, see [1].', {"a": 1}),
    "array-in-prose": ('They are [{"a": 1}, {"a": 2}].', [{"a": 1}, {"a": 2}]),
    "brackets-of-prose": ("use f(x) {sic} [see below] {x} -> {}", {}),
    "fence-in-a-string": ('x\n```json\n{"a": "```\\n"}\n```', {"a": "```\n"}),
    "line-separator-in-a-string": ('x\n```json\n{"a": "\u2028```"}\n```', {"a": "\u2028```"}),
    "stray-quote": ('the 5" disk {"a": 1}', {"a": 1}),
    "emoji": ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
    "whole-number-as-float": ("x [1e3, -0, 1.0]", [1000.0, 0, 1.0]),
}
LACKING = {
    "nothing": ("", Lack.NO_JSON),
    "prose": ("I could not do it.", Lack.NO_JSON),
    "brackets-of-prose": ("f(x)[i] = {x | x > 0}", Lack.NO_JSON),
    "scalar-in-prose": ("it is 42", Lack.NO_JSON),
    "trailing-comma": ('{"a": 1,}', Lack.MALFORMED),
    "comment": ('```json\n{"a": 1} // so\n```', Lack.MALFORMED),
    "single-quotes": ("{'a': 1}", Lack.MALFORMED),
    "cut": ('{"items": [{"a": 1}, {"a": 2}', Lack.MALFORMED),
    "cut-in-a-block": ('```json\n{"items": [{"a": 1}, {"a"', Lack.MALFORMED),
    "draft-then-broken": ('```json\n{"a": 1}\n```\n```json\n{"a": 2,}\n```', Lack.MALFORMED),
    "two-values-in-a-block": ('```json\n{"a": 1}\n{"a": 2}\n```', Lack.MALFORMED),
    "empty-block": ("so\n```json\n\n```", Lack.MALFORMED),
    "nan": ('{"a": NaN}', Lack.MALFORMED),
    "infinity-by-size": ('{"a": 1e999}', Lack.MALFORMED),
    "endless-integer": ('{"a": ' + "9" * 5000 + "}", Lack.MALFORMED),
    "key-twice": ('{"a": 1, "a": 2}', Lack.MALFORMED),
    "key-twice-in-prose": ('is {"b": {"a": 1, "a": 2}}.', Lack.MALFORMED),
    "half-a-surrogate": ('{"a": "\\ud800"}', Lack.MALFORMED),
    "too-deep": ("[" * 101 + "]" * 101, Lack.TOO_DEEP),
    "far-too-deep": ("[" * 5000 + "]" * 5000, Lack.MALFORMED),
}

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=20,
)
_containers = st.lists(_values, max_size=4) | st.dictionaries(_texts, _values, max_size=4)
#: what people write around a value: no bracket, and no fence
_prose = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{}[]`~"), max_size=60)


@pytest.mark.parametrize(("text", "value"), FOUND.values(), ids=FOUND)
def test_the_value_that_is_meant_is_found(text: str, value: object) -> None:
    assert find_json(text) == Found(value, to_json(value))


@pytest.mark.parametrize(("text", "lack"), LACKING.values(), ids=LACKING)
def test_what_is_missing_or_broken_is_told(text: str, lack: Lack) -> None:
    assert find_json(text) is lack


def test_what_lies_in_something_broken_is_no_value_of_its_own() -> None:
    """Ours: else an answer that was cut would be taken for one of its items."""
    assert find_json('It is {"items": [{"a": 1}, {"a": 2}') is Lack.NO_JSON
    assert find_json('It is {"one": {"a": 1}, "two": oops}') is Lack.NO_JSON


@given(value=_values, indent=st.none() | st.integers(0, 4), ascii_only=st.booleans())
def test_any_value_alone_is_found(value: object, indent: int | None, *, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert find_json(text) == Found(value, to_json(value))


@given(
    value=_values,
    before=_prose,
    after=_prose,
    indent=st.none() | st.integers(0, 4),
    ascii_only=st.booleans(),
    fence=st.sampled_from(["```", "````", "~~~"]),
    draft=st.none() | _values,
)
def test_any_value_survives_prose_and_a_fence(  # noqa: PLR0913, PLR0917 - what a model may write around it
    value: object,
    before: str,
    after: str,
    indent: int | None,
    fence: str,
    draft: object,
    *,
    ascii_only: bool,
) -> None:
    first = "" if draft is None else f"```json\n{json.dumps(draft)}\n```\n"
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    found = find_json(f"{first}{before}\n{fence}json\n{text}\n{fence}\n{after}")
    assert found == Found(value, to_json(value))


@given(value=_containers, before=_prose, after=_prose, indent=st.none() | st.integers(0, 4))
def test_any_object_or_array_survives_prose(
    value: object, before: str, after: str, indent: int | None
) -> None:
    found = find_json(f"So {before} {json.dumps(value, indent=indent)} {after} so.")
    assert found == Found(value, to_json(value))


@given(st.text())
def test_any_text_comes_to_a_value_or_to_a_reason(text: str) -> None:
    found = find_json(text)
    if isinstance(found, Found):
        assert json.loads(found.json) == found.value
        found.json.encode()
        assert not is_deeper(found.value, MAX_DEPTH)


@given(st.lists(st.sampled_from(['{"a":', "[", "{", "]", "}", '"', "1", ",", "\n```json\n", "\\"])))
def test_any_wreck_comes_to_a_value_or_to_a_reason(pieces: list[str]) -> None:
    found = find_json("".join(pieces))
    assert isinstance(found, Found | Lack)


def test_depth_is_that_of_the_deepest() -> None:
    assert not is_deeper(1, 0)
    assert is_deeper([], 0)
    assert not is_deeper([1, {}], 2)
    assert is_deeper([1, {"a": []}], 2)

"""Pages: together they are the whole, whatever is asked for, and each is small enough to send."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from opencode_mcp.callers.arguments_reading import OutputArguments
from opencode_mcp.callers.output_pages import present_output
from opencode_mcp.callers.paging import page_end
from opencode_mcp.callers.wire import output_schema
from opencode_mcp.engine.effects import ToolCall
from opencode_mcp.engine.outputs import Reading, TurnOutput
from opencode_mcp.engine.sections import Changes, ToolLog
from opencode_mcp.errors import InvalidArgumentError
from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode.diffs import ChangedFile
from opencode_mcp.records import Session, Submission, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.sections import Content

_SHAPE = Draft202012Validator(output_schema())
_NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
_SESSION = Session("ses_" + "a" * 26, "local", "i", "/repo", Phase.ACTIVE, 1, _NOW, _NOW)
_TURN = Turn(_SESSION.id, 3, "msg_" + "b" * 26, None, Submission.RECORDED, _NOW, _NOW)
#: the limit of a result (contract §3), in its longest spelling
_MOST = 45_000

#: texts long enough to need pages, of characters that take one, two, six and twelve places as JSON
_TEXTS = st.text(alphabet='a"\n\\é中😀\u0001\u2028', max_size=40).map(lambda text: text * 700)
_LIMITS = st.one_of(st.none(), st.integers(min_value=1, max_value=40_000))


def _page(content: Content, **arguments: object) -> Result:
    asked: dict[str, Any] = {"sessionId": _SESSION.id, "turn": 3, **arguments}
    reading = Reading(content, is_partial=False, snapshot_id="snap_1", observed_at=_NOW)
    result = present_output(
        TurnOutput(_SESSION, _TURN, reading), OutputArguments.model_validate(asked)
    )
    assert len(json.dumps(result)) < _MOST
    return result


def _pages(content: Content, **arguments: object) -> Iterator[Result]:
    """Follow the pages to the end."""
    offset = 0
    while True:
        page = _page(content, offset=offset, **arguments)
        assert page["offset"] == offset
        yield page
        if not page["hasMore"]:
            assert "nextOffset" not in page
            return
        assert page["nextOffset"] > offset
        offset = page["nextOffset"]


@given(_TEXTS, _LIMITS)
def test_the_pages_of_a_text_are_the_text(text: str, limit: int | None) -> None:
    limit = None if limit is None else max(limit, len(text) // 50)  # or it takes a page a letter
    pages = list(_pages(text, limit=limit))
    if text:
        assert "".join(page["content"] for page in pages) == text
    assert {page["total"] for page in pages} == {len(text)}
    assert all(len(page["content"]) <= (limit or 20_000) for page in pages if text)


@given(_TEXTS, st.integers(min_value=0, max_value=30_000), _LIMITS)
def test_a_page_from_anywhere_is_what_stands_there(
    text: str, offset: int, limit: int | None
) -> None:
    page = _page(text, offset=offset, limit=limit)
    end = page.get("nextOffset", len(text))
    if offset < len(text):
        assert page["content"] == text[offset:end]
    assert page["hasMore"] == (end < len(text))


@given(
    st.integers(min_value=0, max_value=200),
    st.integers(min_value=1, max_value=300),
    st.integers(min_value=0, max_value=200),
    st.integers(min_value=0, max_value=250),
)
def test_a_page_ends_where_it_must_and_never_stands_still(
    offset: int, limit: int, total: int, largest: int
) -> None:
    end = page_end(offset, limit, total, lambda end: end <= largest)
    if offset >= total:
        assert end == offset
    else:
        assert end == max(offset + 1, min(offset + limit, total, largest))


def _call(number: int, size: int) -> tuple[str, ToolCall]:
    call = ToolCall("bash", "completed", f"call {number} " + "ü" * 400, None)
    return f"#{number} bash\n{'x' * size}\n\n", call


@given(st.lists(st.integers(min_value=0, max_value=9_000), max_size=60), _LIMITS)
def test_each_tool_call_is_listed_on_the_one_page_where_it_begins(
    sizes: list[int], limit: int | None
) -> None:
    made = [_call(number, size) for number, size in enumerate(sizes)]
    starts = [sum(len(text) for text, _ in made[:n]) for n in range(len(made))]
    log = ToolLog("".join(text for text, _ in made), tuple(c for _, c in made), tuple(starts))
    limit = None if limit is None else max(limit, 500)  # or it takes a thousand pages
    titles = []
    for page in _pages(log, section="tool-calls", limit=limit):
        _SHAPE.validate(page)
        assert page["toolCallCount"] == len(made)
        end = page.get("nextOffset", page["total"])
        begun = [made[n][1] for n in range(len(made)) if page["offset"] <= starts[n] < end]
        assert len(page["toolCalls"]) == len(begun)
        titles += [call["title"] for call in page["toolCalls"]]
    assert [title.split(" ")[1] for title in titles] == [str(n) for n in range(len(made))]


def _changes(count: int) -> Changes:
    patches = ["@@ -1 +1 @@\n-a\n+b\n", "no newline at its end", ""]
    return Changes(
        tuple(
            ChangedFile(file=f"{n}/" + "ü" * 500, patch=patches[n % 3], status="modified")
            for n in range(count)
        )
    )


@given(st.integers(min_value=0, max_value=90), _LIMITS)
def test_the_pages_of_a_stat_list_each_file_once(count: int, limit: int | None) -> None:
    listed = []
    for page in _pages(_changes(count), section="diff", limit=limit):
        _SHAPE.validate(page)
        assert page["total"] == count
        listed += [file["index"] for file in page["diff"]]
    assert listed == list(range(count))


def test_a_stat_says_of_each_file_what_happened_to_it() -> None:
    file = ChangedFile(file="src/a.py", patch="x", additions=3, deletions=1, status="modified")
    page = _page(Changes((file,)), section="diff")
    assert page["content"] == "0 modified +3 -1 src/a.py\n"
    assert page["diff"] == [
        {"index": 0, "file": "src/a.py", "status": "modified", "additions": 3, "deletions": 1}
    ]


def test_a_patch_is_that_files_own_and_without_an_index_all_of_them() -> None:
    changes = _changes(4)
    one = _page(changes, section="diff", **{"diff-view": "patch", "file-index": 0})
    binary = _page(changes, section="diff", **{"diff-view": "patch", "file-index": 2})
    whole = list(_pages(changes, section="diff", limit=100, **{"diff-view": "patch"}))
    text = "".join(page["content"] for page in whole)

    assert one["content"] == changes.files[0].patch
    assert [file["index"] for file in one["diff"]] == [0]
    assert (binary["total"], "binary" in binary["content"]) == (0, True)
    assert text.count("@@ -1 +1 @@\n-a\n+b\n") == 2
    assert "no newline at its end\nIndex: 2/" in text
    assert [file["index"] for page in whole for file in page["diff"]] == [0, 1, 2, 3]


@pytest.mark.parametrize(("count", "named"), [(3, "0 to 2"), (0, "no files")])
def test_an_index_beyond_the_files_is_told_with_those_there_are(count: int, named: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"file-index is 3; .*{named}"):
        _page(_changes(count), section="diff", **{"diff-view": "patch", "file-index": 3})


@pytest.mark.parametrize("content", ["", ToolLog("", (), ()), Changes(())])
def test_a_page_of_nothing_says_so(content: Content) -> None:
    page = _page(content)
    assert page["content"]
    assert (page["total"], page["hasMore"]) == (0, False)


def test_a_page_beyond_the_end_says_how_much_there_is() -> None:
    page = _page("some text", offset=100)
    assert "9" in page["content"]
    assert (page["total"], page["hasMore"]) == (9, False)


def test_a_page_names_the_call_for_the_next_one() -> None:
    page = _page("x" * 50_000)
    assert page["hint"] == "Go on with offset 20000 and snapshot-id snap_1."

"""Bounded reads: a long turn costs a few messages a look, and one too large is read around."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from opencode_mcp.engine.history import MAX_CHARS, MAX_MESSAGES, TurnHistory
from opencode_mcp.engine.outcome import Unread
from opencode_mcp.opencode.client import MessagePage, OpencodeClient
from opencode_mcp.opencode_errors import OpencodeNotFoundError, ResponseTooLargeError
from opencode_mcp.records import Submission, Turn
from tests.engine.make import START_MS, assistant, text, tool, user

if TYPE_CHECKING:
    from opencode_mcp.opencode.models import Message

_NOW = datetime(2026, 11, 29, tzinfo=UTC)


def _turn(boundary: str | None = None) -> Turn:
    return Turn("ses_1", 1, "msg_own", boundary, Submission.RECORDED, _NOW, _NOW)


class _Pages(OpencodeClient):
    """Serves messages as OpenCode pages them (facts 11.1), refuses large ones, and counts."""

    def __init__(self, history: list[Message], *, large: frozenset[str] = frozenset()) -> None:
        self.history = history
        #: ids of messages that alone are larger than the limit
        self.large = large
        #: messages that fit into one page together
        self.fits = 1_000
        #: the size of each page that was asked for
        self.asked: list[int] = []
        self.singles: list[str] = []

    async def messages(
        self,
        session_id: str,
        *,
        limit: int,
        before: str | None = None,
        timeout_s: float | None = None,
    ) -> MessagePage:
        del session_id, timeout_s
        self.asked.append(limit)
        end = len(self.history) if before is None else int(before)
        page = self.history[max(0, end - limit) : end]
        if len(page) > self.fits or self.large & {m.info.id for m in page}:
            message = "too large"
            raise ResponseTooLargeError(message)
        start = end - len(page)
        return MessagePage(page, str(start) if start else None)

    async def message(
        self, session_id: str, message_id: str, *, timeout_s: float | None = None
    ) -> Message:
        del session_id, timeout_s
        self.singles.append(message_id)
        if message_id in self.large:
            message = "too large"
            raise ResponseTooLargeError(message)
        for found in self.history:
            if found.info.id == message_id:
                return found
        raise OpencodeNotFoundError(message_id)


def _own(**more: Any) -> Message:  # noqa: ANN401 - fields of its info
    return user(id="msg_own", **more)


def _steps(count: int, first: int = 0) -> list[Message]:
    return [
        assistant(tool("completed"), text(f"step {n}"), finish="tool-calls", id=f"msg_s{n}")
        for n in range(first, first + count)
    ]


def _ids(messages: object) -> list[str]:
    assert isinstance(messages, list)
    return [message.info.id for message in messages]


@pytest.mark.parametrize("before", [0, 1, 30])
@pytest.mark.parametrize("steps", [0, 1, 19, 20, 150, 500])
async def test_a_turn_is_read_from_its_prompt_on(before: int, steps: int) -> None:
    own = [_own(), *_steps(steps)]
    pages = _Pages([*_steps(before, first=1000), *own])
    read = await TurnHistory(_turn()).read(pages)
    assert _ids(read.messages) == _ids(own)
    assert read.unread is None


async def test_a_prompt_that_is_not_visible_yet_is_no_message() -> None:
    pages = _Pages(_steps(300))
    read = await TurnHistory(_turn(boundary="msg_s299")).read(pages)
    assert list(read.messages) == []
    assert len(pages.asked) == 1, "it does not page past what was there before the prompt"


async def test_a_look_at_a_long_turn_reads_its_news_only() -> None:
    pages = _Pages([_own(), *_steps(400)])
    history = TurnHistory(_turn())
    await history.read(pages)
    pages.asked.clear()
    pages.history += _steps(3, first=400)
    read = await history.read(pages)
    assert _ids(read.messages) == _ids(pages.history)
    assert len(pages.asked) == 1
    assert sum(pages.asked) < 10


async def test_a_look_after_a_pause_reads_all_that_came() -> None:
    pages = _Pages([_own(), *_steps(10)])
    history = TurnHistory(_turn())
    await history.read(pages)
    pages.history += _steps(200, first=10)
    assert _ids((await history.read(pages)).messages) == _ids(pages.history)


async def test_what_was_unfinished_is_read_again() -> None:
    """Though newer steps were complete at the last look already, and are among the news."""
    unfinished = assistant(tool("running"), finish=None, completed=False, id="msg_s1")
    first, _, *others = _steps(6)
    pages = _Pages([_own(), first, unfinished, *others])
    history = TurnHistory(_turn())
    await history.read(pages)
    pages.history = [_own(), *_steps(9)]
    read = await history.read(pages)
    assert _ids(read.messages) == _ids(pages.history)
    assert read.messages[2].info.finish == "tool-calls"


async def test_a_turn_that_outgrows_its_bounds_between_looks_says_so() -> None:
    pages = _Pages([_own(), *_steps(MAX_MESSAGES - 5)])
    history = TurnHistory(_turn())
    assert (await history.read(pages)).unread is None
    pages.history += _steps(10, first=MAX_MESSAGES - 5)
    read = await history.read(pages)
    assert len(read.messages) == MAX_MESSAGES
    assert read.unread is Unread.EARLIER


async def test_the_summary_of_changes_is_read_at_the_end() -> None:
    """OpenCode writes it into the prompt's message, late (facts 3.5)."""
    pages = _Pages([_own(), *_steps(60)])
    history = TurnHistory(_turn())
    await history.read(pages)
    assert pages.singles == []
    pages.history = [
        _own(summary={"diffs": [{"file": "a.py"}]}),
        *_steps(60),
        assistant(text("done"), id="msg_end"),
    ]
    summary = (await history.read(pages)).messages[0].info.summary
    assert summary is not None
    assert not isinstance(summary, bool)
    assert [diff.file for diff in summary.diffs] == ["a.py"]


async def test_a_page_that_is_too_large_is_read_in_smaller_ones() -> None:
    pages = _Pages([_own(), *_steps(50)])
    pages.fits = 3
    read = await TurnHistory(_turn()).read(pages)
    assert _ids(read.messages) == _ids(pages.history)
    assert read.unread is None


async def test_a_message_too_large_alone_leaves_its_neighbours() -> None:
    pages = _Pages([_own(), *_steps(50)], large=frozenset({"msg_s20"}))
    history = TurnHistory(_turn())
    read = await history.read(pages)
    assert _ids(read.messages) == ["msg_own", *(f"msg_s{n}" for n in range(21, 50))]
    assert read.unread is Unread.EARLIER
    pages.asked.clear()
    again = await history.read(pages)
    assert (_ids(again.messages), again.unread) == (_ids(read.messages), Unread.EARLIER)
    assert len(pages.asked) == 1, "it is not tried again at every look"


async def test_a_newest_message_too_large_is_said_to_be_the_newest() -> None:
    pages = _Pages([_own(), *_steps(3)])
    history = TurnHistory(_turn())
    await history.read(pages)
    pages.history += _steps(1, first=3)
    pages.large = frozenset({"msg_s3"})
    read = await history.read(pages)
    assert (_ids(read.messages), read.unread) == (
        ["msg_own", "msg_s0", "msg_s1", "msg_s2"],
        Unread.NEWEST,
    )
    pages.history += _steps(1, first=4)
    later = await history.read(pages)
    assert later.unread is Unread.EARLIER
    assert _ids(later.messages)[-1] == "msg_s4"


async def test_a_turn_whose_prompt_is_too_large_is_read_all_the_same() -> None:
    pages = _Pages([_own(), *_steps(2)], large=frozenset({"msg_own"}))
    read = await TurnHistory(_turn()).read(pages)
    assert _ids(read.messages) == ["msg_own", "msg_s0", "msg_s1"]
    assert read.unread is Unread.EARLIER


async def test_a_prompt_that_is_not_there_stays_unseen_beside_a_large_message() -> None:
    pages = _Pages(_steps(2), large=frozenset({"msg_s1"}))
    assert list((await TurnHistory(_turn()).read(pages)).messages) == []


async def test_a_turn_without_end_is_kept_within_bounds() -> None:
    pages = _Pages([_own(), *_steps(MAX_MESSAGES + 500)])
    history = TurnHistory(_turn())
    read = await history.read(pages)
    assert len(read.messages) <= MAX_MESSAGES
    assert read.messages[0].info.id == "msg_own"
    assert read.messages[-1].info.id == f"msg_s{MAX_MESSAGES + 499}"
    assert read.unread is Unread.EARLIER
    pages.asked.clear()
    pages.history += _steps(1, first=MAX_MESSAGES + 500)
    again = await history.read(pages)
    assert again.unread is Unread.EARLIER
    assert len(again.messages) <= MAX_MESSAGES
    assert len(pages.asked) == 1


async def test_much_text_is_kept_within_bounds_the_newest_last() -> None:
    large = "x" * (MAX_CHARS // 4)
    steps = [
        assistant(text(large), tool("completed"), finish="tool-calls", id=f"msg_s{n}")
        for n in range(8)
    ]
    read = await TurnHistory(_turn()).read(_Pages([_own(), *steps]))
    kept = [sum(len(part.text or "") for part in m.parts) for m in read.messages]
    assert sum(kept) <= MAX_CHARS
    assert kept[-1] == len(large)
    assert all(part.tool == "bash" for m in read.messages[1:] for part in m.parts[1:])


async def test_the_prompts_own_text_is_not_kept() -> None:
    pages = _Pages([_own(), *_steps(1)])
    read = await TurnHistory(_turn()).read(pages)
    assert "the prompt" not in repr(read.messages)


async def test_a_loop_is_found_in_what_was_read() -> None:
    empty = [assistant(finish="unknown", id=f"msg_e{n}", at_ms=START_MS + n) for n in range(10)]
    history = TurnHistory(_turn())
    await history.read(_Pages([_own(), *empty]))
    loop = history.find_loop(6)
    assert loop is not None
    assert loop.count == 10
    history.forget()
    assert history.find_loop(6) is None

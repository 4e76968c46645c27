"""The messages between one turn's prompt and the next one's, read once and with all they hold.

OpenCode gives a history from its newest message backwards, in pages with a cursor (facts 11.1), so
that an old turn costs the reading of all that came after it. Of that nothing is kept: what is held
at a time are the messages of one turn, with at most `MAX_CHARS` characters of text and details, the
newest ones, and one page of at most `MESSAGES_MAX_BYTES`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opencode_mcp.opencode.whole_messages import CallDetail
from opencode_mcp.opencode_errors import OpencodeNotFoundError, ResponseTooLargeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.opencode.client import OpencodeClient
    from opencode_mcp.opencode.whole_messages import WholeMessage, WholePage
    from opencode_mcp.records import Turn

#: 16 Mi: older messages of the same turn are kept without their text and details
MAX_CHARS = 16 * 1024 * 1024
#: older messages of the same turn are not kept
MAX_MESSAGES = 5_000
_FIRST_PAGE = 20
_PAGE = 100
#: a page that is too large is asked for again with so much fewer messages
_SHRINK = 4


@dataclass(frozen=True, slots=True)
class Interval:
    """A turn's messages, oldest first; empty where its prompt is not in the history."""

    messages: Sequence[WholeMessage]
    #: nothing of them was left out
    is_whole: bool


@dataclass(slots=True)
class _Walk:
    """One way back through the history."""

    turn: Turn
    #: prompts of later turns that were not passed yet: what stands behind one is not this turn's
    later: set[str]
    limit: int = _FIRST_PAGE
    before: str | None = None
    #: the turn's messages so far, newest first
    kept: list[WholeMessage] = field(default_factory=list)
    room: int = field(default_factory=lambda: MAX_CHARS)
    is_whole: bool = True

    def take(self, message: WholeMessage) -> None:
        """Take the next older message."""
        if message.info.id in self.later:
            self.later.remove(message.info.id)
            self.kept, self.room, self.is_whole = [], MAX_CHARS, True
            return
        is_prompt = message.info.id == self.turn.message_id
        if len(self.kept) >= MAX_MESSAGES and not is_prompt:
            self.is_whole = False
            return
        self.is_whole &= self.room > 0 and _is_whole(message)
        self.kept.append(message if self.room > 0 or is_prompt else _bare(message))
        self.room -= _chars(message)

    def found(self) -> Interval:
        """Return what was kept."""
        return Interval(self.kept[::-1], self.is_whole)


async def read_interval(client: OpencodeClient, turn: Turn, later: frozenset[str]) -> Interval:
    """Read the turn's messages; `later`: the ids of the prompts after its own.

    Raises what the client raises; ResponseTooLargeError where a single message is in the way.
    """
    walk = _Walk(turn, set(later))
    while True:
        try:
            page = await _page(client, walk)
        except ResponseTooLargeError:
            if walk.kept and not walk.later:  # what is kept is this turn's for sure
                return await _around_a_gap(client, walk)
            raise
        for message in reversed(page.messages):
            walk.take(message)
            if message.info.id == turn.message_id:
                return walk.found()
            if message.info.id == turn.boundary:
                return Interval([], is_whole=True)
        if page.before is None or not page.messages:
            return Interval([], is_whole=True)
        walk.before = page.before
        walk.limit = min(_PAGE, walk.limit * _SHRINK)


async def _page(client: OpencodeClient, walk: _Walk) -> WholePage:
    """Read a page, smaller and smaller while it is too large."""
    while True:
        try:
            return await client.whole_messages(
                walk.turn.session_id, limit=walk.limit, before=walk.before
            )
        except ResponseTooLargeError:
            if walk.limit == 1:
                raise
            walk.limit = max(1, walk.limit // _SHRINK)


async def _around_a_gap(client: OpencodeClient, walk: _Walk) -> Interval:
    """Return what stands on both sides of a message that cannot be read."""
    turn = walk.turn
    try:
        walk.kept.append(await client.whole_message(turn.session_id, turn.message_id))
    except OpencodeNotFoundError:
        return Interval([], is_whole=True)
    except ResponseTooLargeError:  # the prompt itself: what came of it is there
        pass
    return Interval(walk.kept[::-1], is_whole=False)


def _is_whole(message: WholeMessage) -> bool:
    return all(part.detail.is_whole for part in message.parts)


def _chars(message: WholeMessage) -> int:
    return sum(
        len(part.text or "") + len(part.detail.input) + len(part.detail.output)
        for part in message.parts
    )


def _bare(message: WholeMessage) -> WholeMessage:
    """Return a message without its text and details."""
    gone = {"text": None, "detail": CallDetail()}
    parts = [part.model_copy(update=gone) for part in message.parts]
    return message.model_copy(update={"parts": parts})

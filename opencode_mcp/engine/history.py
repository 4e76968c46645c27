"""The messages of one turn, read again and again at a bounded cost.

What is complete is kept, so that a look at a running turn reads its newest few messages, however
long the turn has become. At most `MAX_MESSAGES` are kept, the turn's own prompt and the newest
ones, with at most `MAX_CHARS` characters of text: of older ones the text goes first, then they go
themselves. A tool's output is cut when it is read (`opencode.fields`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opencode_mcp.engine.looping import find_loop
from opencode_mcp.engine.outcome import Unread
from opencode_mcp.engine.steps import own_messages, steps_of
from opencode_mcp.opencode.models import Message, MessageInfo, MessageTime
from opencode_mcp.opencode_errors import OpencodeNotFoundError, ResponseTooLargeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.engine.looping import ResponseLoop
    from opencode_mcp.opencode.client import MessagePage, OpencodeClient
    from opencode_mcp.records import Turn

#: a turn of more steps is judged by its newest ones
MAX_MESSAGES = 2_000
#: 16 Mi: more than any answer that a caller would page through
MAX_CHARS = 16 * 1024 * 1024
_FIRST_PAGE = 20
_PAGE = 100
#: what may have come between two looks at a running turn, and the one that was unfinished
_NEWS = 6
#: a page that is too large is asked for again with so much fewer messages
_SHRINK = 4


@dataclass(frozen=True, slots=True)
class TurnMessages:
    """A turn's messages, oldest first; empty while its prompt is not visible yet."""

    messages: Sequence[Message]
    unread: Unread | None = None


@dataclass(slots=True)
class _Walk:
    """One way back through the history: what was found, and how large a page may be."""

    limit: int
    found: list[Message]
    before: str | None = None


class TurnHistory:
    """Reads one turn's messages: from its user message on, later turns' included.

    Reads under way at once do not disturb each other. Raises what the client raises; a page that is
    too large is no error here.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._kept: list[Message] = []
        #: something between what is kept is not: it was too large, or too much
        self._has_gap = False
        self._limit = _FIRST_PAGE

    async def read(self, client: OpencodeClient) -> TurnMessages:
        """Read what is new. Pages back to what is kept, the turn's own message, or its boundary."""
        kept = self._kept
        walk = _Walk(min(self._limit, _NEWS) if kept else self._limit, [])
        while True:
            page = await self._page(client, walk)
            if page is None:
                return await self._with_a_gap(client, kept, walk.found)
            walk.found = [*page.messages, *walk.found]
            joined = self._join(kept, walk.found)
            if joined is not None:
                return self._keep(await self._with_summary(client, joined, walk.found))
            ids = {message.info.id for message in page.messages}
            if page.before is None or not page.messages or self._turn.boundary in ids:
                return TurnMessages([])
            if len(walk.found) >= MAX_MESSAGES:
                return await self._with_a_gap(client, kept, walk.found)
            walk.before = page.before
            walk.limit = min(_PAGE, max(walk.limit * _SHRINK, _NEWS))

    def find_loop(self, limit: int) -> ResponseLoop | None:
        """Return the loop at the end of what was read last, if the turn is in one (`looping`)."""
        return find_loop(steps_of(own_messages(self._kept, stopped=False)), limit)

    def forget(self) -> None:
        """Let go of what is kept; a further read begins anew."""
        self._kept = []

    async def _page(self, client: OpencodeClient, walk: _Walk) -> MessagePage | None:
        """Read a page, smaller and smaller while it is too large; None: one message alone is.

        There is no way past such a message: the cursor to what is older comes with it.
        """
        while True:
            try:
                return await client.messages(
                    self._turn.session_id, limit=walk.limit, before=walk.before
                )
            except ResponseTooLargeError:
                if walk.before is None:  # the next look need not try the large page again
                    self._limit = max(1, walk.limit // _SHRINK)
                if walk.limit == 1:
                    return None
                walk.limit = max(1, walk.limit // _SHRINK)

    def _join(self, kept: Sequence[Message], found: Sequence[Message]) -> list[Message] | None:
        """Put what was found behind what is kept; None if they do not touch yet."""
        places: dict[str, int] = {}
        for index, message in enumerate(kept):
            places[message.info.id] = index
            if not _is_complete(message):  # what stands behind it must be read with it
                break
        for index, message in enumerate(found):
            if message.info.id == self._turn.message_id:
                self._has_gap = False
                return list(found[index:])
            place = places.get(message.info.id)
            if place is not None:
                return [*kept[:place], *found[index:]]
        return None

    async def _with_summary(
        self, client: OpencodeClient, joined: list[Message], found: Sequence[Message]
    ) -> list[Message]:
        """Read the prompt's message again at the end: it gets the summary of changes late."""
        own = self._turn.message_id
        is_new = any(message.info.id == own for message in found)
        if is_new or joined[-1].info.finish in {None, "tool-calls"}:
            return joined
        try:
            return [await client.message(self._turn.session_id, own), *joined[1:]]
        except (OpencodeNotFoundError, ResponseTooLargeError):
            return joined

    async def _with_a_gap(
        self, client: OpencodeClient, kept: Sequence[Message], found: Sequence[Message]
    ) -> TurnMessages:
        """Return what can be read around a message that cannot: its neighbours, and the prompt."""
        if not kept:
            own = await self._own(client)
            kept = [] if own is None else [own]
        if not kept:
            return TurnMessages([])
        new = {message.info.id for message in found}
        around = [message for message in kept if message.info.id not in new]
        self._has_gap = True
        if steps_of(found):
            return self._keep([*around, *found])
        return TurnMessages(_bounded([*around, *found]), Unread.NEWEST)

    async def _own(self, client: OpencodeClient) -> Message | None:
        """Read the prompt's message alone; one that is too large is there all the same."""
        turn = self._turn
        try:
            return await client.message(turn.session_id, turn.message_id)
        except OpencodeNotFoundError:
            return None
        except ResponseTooLargeError:
            return Message(
                info=MessageInfo(
                    id=turn.message_id,
                    session_id=turn.session_id,
                    role="user",
                    time=MessageTime(created=turn.created_at),
                )
            )

    def _keep(self, messages: list[Message]) -> TurnMessages:
        self._kept = _bounded(messages)
        self._has_gap |= len(self._kept) < len(messages)
        return TurnMessages(self._kept, Unread.EARLIER if self._has_gap else None)


async def read_turn(client: OpencodeClient, turn: Turn) -> Sequence[Message]:
    """Return the turn's messages, oldest first, for somebody who looks once."""
    return (await TurnHistory(turn).read(client)).messages


async def newest_prompt(client: OpencodeClient, session_id: str) -> str | None:
    """Return the id of the newest user message, whoever sent it; None: not among the newest."""
    page = await client.messages(session_id, limit=_FIRST_PAGE)
    ids = [message.info.id for message in page.messages if message.info.role == "user"]
    return ids[-1] if ids else None


def _is_complete(message: Message) -> bool:
    """Whether a message will not change any more; a prompt gets its summary (`_with_summary`)."""
    return message.info.role == "user" or message.info.time.completed is not None


def _bounded(messages: Sequence[Message]) -> list[Message]:
    """Return the prompt and the newest messages, older ones without their text where it is much."""
    newest = messages[1:][-(MAX_MESSAGES - 1) :]
    room = MAX_CHARS
    kept = []
    for message in reversed(newest):
        room -= _chars(message)
        kept.append(message if room >= 0 and message.info.role != "user" else _bare(message))
    return [_bare(messages[0]), *reversed(kept)] if messages else []


def _chars(message: Message) -> int:
    return sum(len(part.text or "") for part in message.parts)


def _bare(message: Message) -> Message:
    """Return a message without its text; what a user said is never looked at again."""
    parts = [part.model_copy(update={"text": None}) for part in message.parts]
    return message.model_copy(update={"parts": parts})

"""What a caller should know of a turn besides its outcome: `warnings` (contract §3)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: finishes that need no word of their own
_PLAIN_FINISHES = frozenset({None, "stop", "length", "tool-calls", "content-filter"})
_FINISH_CHARS = 100


class Notice(StrEnum):
    """The codes."""

    TRUNCATED = "TRUNCATED"
    PARTIAL_ANSWER = "PARTIAL_ANSWER"
    EARLIER_TEXT = "EARLIER_TEXT"
    ABORTED_ELSEWHERE = "ABORTED_ELSEWHERE"
    SESSION_ENDED = "SESSION_ENDED"
    PROCESS_MAY_LIVE = "PROCESS_MAY_LIVE"
    STILL_BUSY = "STILL_BUSY"
    TOO_LARGE = "UPSTREAM_RESPONSE_TOO_LARGE"


#: at most 300 characters each
_TEXTS = {
    Notice.TRUNCATED: "The model reached its output limit: the answer is cut. Ask for the rest with"
    " opencode-reply.",
    Notice.PARTIAL_ANSWER: "The text is what was written before the turn ended.",
    Notice.EARLIER_TEXT: "The last step said nothing: the text is that of an earlier step.",
    Notice.ABORTED_ELSEWHERE: "Somebody else stopped the turn in OpenCode.",
    Notice.SESSION_ENDED: "The session was ended, and its turn with it: it takes no new prompt.",
    Notice.PROCESS_MAY_LIVE: "A shell command or a sub-agent was cut off. Processes that it started"
    " may still run: some seconds if they ignore SIGTERM, for good if they left its group.",
    Notice.STILL_BUSY: "The answer is complete, but OpenCode still lists the session as busy: a"
    " further step may come. A reply is refused with SESSION_BUSY until it is idle.",
    Notice.TOO_LARGE: "Part of the turn is larger than this server reads: its tool calls, changed"
    " files and tokens are not all told here.",
}


def warnings_of(notices: Sequence[Notice], finish: str | None) -> tuple[tuple[str, str], ...]:
    """Return codes with their texts. `finish` is a completed turn's, None for any other."""
    found = [(notice.value, _TEXTS[notice]) for notice in notices]
    if finish not in _PLAIN_FINISHES:
        said = f"The provider ended the answer with {(finish or '')[:_FINISH_CHARS]!r}."
        found.append(("NONSTANDARD_FINISH", said))
    return tuple(found)

"""Which messages are a turn's own, and which of them are answers.

OpenCode writes into a session too: a compaction adds a user message, a summary and then either a
user message "continue" or the prompt once more (tried on 1.18.33). None of it begins or ends a
turn. Another client may prompt a session of ours: its prompt joins the turn that runs (facts 2.8).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from opencode_mcp.engine.effects import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.opencode.models import Message

Read = TypeVar("Read", bound="Message")

#: a prompt that came at most so long after a step ended was there when OpenCode looked for the next
_JOINED_WITHIN = timedelta(seconds=1)
#: finishes after which OpenCode asks the model again (tried on 1.18.33)
_GOES_ON = frozenset({None, "tool-calls", "unknown"})


def own_messages(messages: Sequence[Read], *, stopped: bool) -> Sequence[Read]:
    """Return a turn's messages without those of later turns; `messages` begin with its prompt.

    `stopped`: we asked it to stop, so that whatever is prompted later is not part of it.
    """
    for index, message in enumerate(messages[1:], start=1):
        if _is_prompt(message, messages[index - 1]) and (
            stopped or not _joins(message, messages[:index])
        ):
            return messages[:index]
    return messages


def _is_prompt(message: Message, before: Message) -> bool:
    """Whether somebody said this, and not OpenCode: after a summary it repeats the prompt."""
    return (
        message.info.role == "user"
        and before.info.summary is not True
        and any(part.type != "compaction" and not part.synthetic for part in message.parts)
    )


def _joins(prompt: Message, before: Sequence[Message]) -> bool:
    """Whether the turn before a prompt was still going on when the prompt came."""
    steps = steps_of(before)
    if not steps:
        return True
    last = steps[-1]
    if last.info.error is not None or is_final(last) or last.info.time.completed is None:
        return False
    return prompt.info.time.created <= last.info.time.completed + _JOINED_WITHIN


def steps_of(messages: Sequence[Message]) -> list[Message]:
    """Return the assistant's messages, one a step. A compaction's is none, unless it failed."""
    return [
        message
        for message in messages
        if message.info.role == "assistant"
        and (message.info.summary is not True or message.info.error is not None)
    ]


def is_final(message: Message) -> bool:
    """Whether a message ends its turn: complete, and OpenCode does not ask the model again.

    After tool calls it asks again whatever the finish says (tried); a `stop` is no end then.
    """
    calls = any(part.type == "tool" and not part.is_run_by_provider for part in message.parts)
    info = message.info
    return info.time.completed is not None and info.finish not in _GOES_ON and not calls


def is_finished_while_listed_as_busy(messages: Sequence[Message]) -> bool:
    """Whether the newest message is an answer that ends the turn, whatever the status says.

    Case B07: how long this is so while the status says busy is for the turn's observer to measure,
    and to tell as `Evidence.overdue_busy`.
    """
    if not messages or messages[-1].info.role != "assistant":
        return False
    newest = messages[-1]
    return newest.info.summary is not True and newest.info.error is None and is_final(newest)


def answer_of(steps: Sequence[Message]) -> tuple[str, bool]:
    """Return the turn's answer, and whether it is the last step's.

    Where the last step says nothing, what an earlier one said is all that a caller can get.
    """
    for step in reversed(steps):
        text = "" if step.info.summary is True else text_of(step)
        if text.strip():
            return text, step is steps[-1]
    return "", True

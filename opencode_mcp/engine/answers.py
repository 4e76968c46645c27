"""Answers to asks: what may be said, whether it fits what was asked, and how it is sent.

OpenCode answers 200 to a reply although nothing waits for it any more (facts 5.5), so a "yes" is
sent only while the tool call that it is for still runs, and is believed only once the ask is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from opencode_mcp.counting import counted
from opencode_mcp.errors import InvalidArgumentError
from opencode_mcp.opencode.models import PermissionRequest, QuestionRequest
from opencode_mcp.opencode_errors import OpencodeError, OpencodeFailedError, OpencodeNotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.clock import Clock
    from opencode_mcp.opencode.client import OpencodeClient
    from opencode_mcp.opencode.models import QuestionItem

Ask: TypeAlias = PermissionRequest | QuestionRequest

#: a reply was seen to take 0.05 s; so often, and so far apart, the list is read after it
_LOOKS = 20
_LOOK_GAP_S = 0.1
#: tries of one reply whose answer is lost
_SENDS = 3
_UNFINISHED = frozenset({"pending", "running"})


@dataclass(frozen=True, slots=True)
class Allow:
    """Yes, this once. `answers`: for a question, for each item the labels chosen, or a text."""

    answers: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Reject:
    """No. With a `message` for the model its turn goes on; without one it ends (facts 5.3)."""

    message: str | None = None


Answer: TypeAlias = Allow | Reject


def check_fits(ask: Ask, answer: Answer) -> None:
    """Raise InvalidArgumentError unless OpenCode can take this answer to this ask."""
    if isinstance(ask, PermissionRequest):
        if isinstance(answer, Allow) and answer.answers:
            _refuse(f"answers: {ask.id} is a permission; leave answers out")
    elif isinstance(answer, Reject):
        if answer.message is not None:
            _refuse(
                f"feedback: {ask.id} is a question, which takes none: answer it in your own words"
                " with decision allow, or reject it without feedback, which ends its turn"
            )
    else:
        _check_answers(ask, answer.answers)


def _check_answers(ask: QuestionRequest, answers: Sequence[Sequence[str]]) -> None:
    if len(answers) != len(ask.questions):
        _refuse(
            f"answers: {ask.id} has {counted(len(ask.questions), 'question')}; given:"
            f" {counted(len(answers), 'answer')}. One list for each question, in their order"
        )
    for number, (item, chosen) in enumerate(zip(ask.questions, answers, strict=True)):
        _check_answer(f"answers[{number}]", item, chosen)


def _check_answer(place: str, item: QuestionItem, chosen: Sequence[str]) -> None:
    labels = [option.label for option in item.options]
    listed = ", ".join(label[:100] for label in labels[:10])
    if not chosen or not all(text.strip() for text in chosen):
        _refuse(f"{place}: give at least one label or text, none of them blank ({listed})")
    if len(chosen) > 1 and not item.multiple:
        _refuse(f"{place}: this question takes one answer ({listed})")
    if not item.custom and not set(chosen) <= set(labels):
        _refuse(f"{place}: must be of the offered labels: {listed}")


def _refuse(why: str) -> None:
    raise InvalidArgumentError(why)


async def is_listed(client: OpencodeClient, ask: Ask, directory: str) -> bool:
    """Whether OpenCode lists the ask as waiting; so it does an orphan (facts 5.5)."""
    listed: Sequence[Ask]
    if isinstance(ask, PermissionRequest):
        listed = await client.permissions(directory)
    else:
        listed = await client.questions(directory)
    return any(other.id == ask.id for other in listed)


async def is_held_up(client: OpencodeClient, ask: Ask) -> bool:
    """Whether the tool call that asks still runs: after an abort it does not (facts 4.3, 5.5).

    True where OpenCode names no call: then only its lists can tell.
    """
    if ask.tool is None:
        return True
    try:
        message = await client.message(ask.session_id, ask.tool.message_id)
    except OpencodeNotFoundError:
        return False
    return any(
        part.state is not None and part.state.status in _UNFINISHED
        for part in message.parts
        if part.call_id == ask.tool.call_id
    )


async def send_answer(
    client: OpencodeClient, ask: Ask, directory: str, answer: Answer, clock: Clock
) -> bool:
    """Answer the ask and see it gone. False: it did not wait any more, and nothing was granted.

    Raises OpencodeError; a lost answer is settled by the list, and sent again while it waits.
    """
    if isinstance(answer, Allow) and not await is_held_up(client, ask):
        return False
    for left in reversed(range(_SENDS)):
        try:
            if not await _send(client, ask, directory, answer):
                return False
        except OpencodeError as error:
            if not error.outcome_unknown:
                raise
            if not await is_listed(client, ask, directory):
                return True
            if not left:
                raise
        else:
            break
    await _see_it_gone(client, ask, directory, clock)
    return True


async def _send(client: OpencodeClient, ask: Ask, directory: str, answer: Answer) -> bool:
    match ask, answer:
        case QuestionRequest(), Allow(answers=answers):
            return await client.reply_question(ask.id, directory, answers)
        case QuestionRequest(), Reject():
            return await client.reject_question(ask.id, directory)
        case _, Allow():
            return await client.reply_permission(ask.id, directory, "once")
        case _, Reject(message=message):
            return await client.reply_permission(ask.id, directory, "reject", message=message)


async def _see_it_gone(client: OpencodeClient, ask: Ask, directory: str, clock: Clock) -> None:
    for _ in range(_LOOKS):
        if not await is_listed(client, ask, directory):
            return
        await clock.sleep(_LOOK_GAP_S)
    msg = f"OpenCode still lists {ask.id} as waiting after it took the answer: look again"
    raise OpencodeFailedError(msg)

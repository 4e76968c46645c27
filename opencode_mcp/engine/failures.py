"""Why a turn failed, in the contract's names and in words that say what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from opencode_mcp.engine.looping import ResponseLoop
    from opencode_mcp.opencode.message_error import MessageError
    from opencode_mcp.opencode.models import MessageInfo

#: the longest text of a fault (contract §3)
_MESSAGE_CHARS = 2_000
#: how much of OpenCode's own word for a fault is repeated
_SAID_CHARS = 500


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a turn failed: `name` is the contract's `error.name`."""

    name: str
    message: str
    status_code: int | None = None
    retryable: bool = False
    #: how long the provider asked to wait, in seconds
    retry_after_s: float | None = None
    #: OpenCode's own name for the fault, or ours for how the turn came to its end
    condition: str | None = None


CONTENT_FILTERED = Failure(
    "UPSTREAM_ERROR",
    "The provider's content filter stopped the answer: word the task otherwise.",
    condition="content-filter",
)
EMPTY = Failure(
    "EMPTY_RESPONSE",
    "The model answered with nothing: no text and no tool call.",
    retryable=True,
)
OUT_OF_TIME = Failure(
    "TURN_INCOMPLETE", "The turn reached its time limit and was stopped.", condition="timeout"
)
TOO_LARGE = Failure(
    "UPSTREAM_RESPONSE_TOO_LARGE",
    "The turn's newest message is larger than this server reads, so how it ended is not known. Look"
    " at its effects; ask for less output in one message.",
)


def incomplete(last: MessageInfo | None, said: str | None, *, seen: bool) -> Failure:
    """Return the failure of a turn that is idle for good without an end.

    `last` is its last step, `said` OpenCode's own word for it, `seen` whether its prompt exists.
    """
    if not seen:
        text = "OpenCode took the prompt and never showed it: no turn ran."
    elif last is None:  # a wrong model or a provider that is not set up: facts 2.4
        text = (
            "OpenCode stored the prompt and ended without an answer. Usual causes: the model or"
            " its provider is not set up in OpenCode, or OpenCode stopped."
        )
    elif last.finish is not None:  # e.g. a rejected permission: facts 5.3
        text = "The turn ended after a tool call, without an answer (a rejected permission does so)"
    elif last.time.completed is not None:  # an abort in a back-off leaves just this: facts 4.4
        text = (
            "The turn ended without an answer: it was aborted elsewhere while OpenCode waited to"
            " ask the provider again, or the provider gave nothing."
        )
    else:
        text = "The turn stopped in the middle of an answer: its OpenCode was killed or restarted."
    if said:
        text = f"{text} OpenCode says: {said[:_SAID_CHARS]}"
    return Failure("TURN_INCOMPLETE", text)


def looped(loop: ResponseLoop | None) -> Failure:
    """Return the failure of a turn that the watchdog stopped."""
    seen = f" ({loop.pattern}, {loop.count} times in a row)" if loop else ""
    text = (
        f"The model's answers repeated without progress{seen}, so the turn was stopped. Try another"
        " model, or word the task otherwise."
    )
    return Failure("UPSTREAM_RESPONSE_LOOP", text)


def failure_of(error: MessageError, at: datetime) -> Failure:
    """Return the failure that a message's error tells; `at` is when it came.

    The names are those of `/doc` of 1.18.33. The provider's headers and body stay behind.
    """
    if error.name == "ContentFilterError":
        return CONTENT_FILTERED
    return Failure(
        name="UPSTREAM_ERROR",
        message=_words(error)[:_MESSAGE_CHARS],
        status_code=error.status_code,
        retryable=error.is_retryable,
        retry_after_s=error.retry_after_s(at),
        condition=error.name,
    )


def _words(error: MessageError) -> str:
    said = error.message
    match error.name:
        case "ProviderAuthError":
            return f"{said} (log in to the provider in OpenCode, or set its key)"
        case "ContextOverflowError":
            return f"{said} (the conversation does not fit the model: start a new session)"
        case "MessageOutputLengthError":  # it comes without a text
            return "The answer reached the model's output limit before it was complete."
        case "UnknownError" if said.startswith("JSON parsing failed"):  # it quotes the stream
            return "The provider's stream was malformed: OpenCode could not read it as JSON."
        case _ if said.lstrip()[:14].lower().startswith(("<!doctype html", "<html")):
            return "The provider answered with an HTML page instead of an answer."
        case _:
            return said

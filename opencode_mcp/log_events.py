"""What the log says: every event that there is, and the ids that a line carries.

A line of ours is one event. Its `event` is the name below in lower case, which stays; the words
beside it are for people. docs/operations.md tells each event's fields.

Ids come along by themselves: `concerning` holds for all that is logged meanwhile in the same task
and in tasks it begins, so a request that is repeated deep inside says for which session and call.
A task that outlives the call which began it names its own ids with `only_concerning`.

No field holds content: prompts, answers, tool outputs, feedback, instructions, titles. Prompts and
answers alone are told, by `tell_content`, and only where `LOG_CONTENT` says so.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum, unique
from logging import DEBUG, ERROR, INFO, WARNING
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: the logger of prompts and answers; `logs.configure_logging` opens or shuts it
CONTENT_LOGGER = "opencode_mcp.content"
#: how much of a prompt or an answer is logged, in characters
CONTENT_CHARS = 2_000

_NO_CLIENT = (
    "there is no client: stdin ended before any request. A container needs `docker run -i`"
    " (or, to serve over HTTP, OPENCODE_MCP_TRANSPORT=http)"
)
_content = logging.getLogger(CONTENT_LOGGER)
_content.disabled = True  # until somebody says otherwise
_ids: ContextVar[Mapping[str, object]] = ContextVar("log ids", default=MappingProxyType({}))


@unique
class Event(Enum):
    """Level and words. Info: the life of things. Warning: a person should look. Debug: details."""

    # the process
    SERVER_STARTED = (INFO, "the server has started")
    SERVER_STOPPING = (INFO, "the server is stopping")
    CONTENT_IS_LOGGED = (WARNING, "prompts and answers are logged, as LOG_CONTENT says")
    VARIABLES_IGNORED = (INFO, "Kubernetes' service links are ignored")
    NO_WAL = (
        WARNING,
        "the tracking database is without a WAL, since its file system cannot share memory",
    )
    LISTENING = (INFO, "listening for HTTP")
    NOT_READY = (WARNING, "not ready: /readyz answers 503")
    NO_CLIENT = (WARNING, _NO_CLIENT)
    CLIENT_DEAF = (WARNING, "the client did not take its answers")
    LINES_DROPPED = (WARNING, "lines were dropped, because nobody read standard error")
    UNEXPECTED_FAILURE = (ERROR, "something failed that must not: a bug of this server")
    # callers over HTTP
    REQUEST_REFUSED = (WARNING, "a request was refused for its host or origin")
    CALLER_REFUSED = (INFO, "a caller without a valid token was refused")
    TOKENS_READ = (INFO, "the file of tokens was read")
    TOKENS_WRONG = (ERROR, "the file of tokens is wrong: the former ones count")
    # calls
    CALL_OVER = (INFO, "a tool call is over")
    PERSON_NOT_ASKED = (WARNING, "the client could not ask its person")
    ANSWER_NOT_GIVEN = (WARNING, "a person's answer could not be given")
    # sessions and turns
    SESSION_STARTED = (INFO, "a session has started")
    SESSION_QUARANTINED = (WARNING, "whether OpenCode has the prompt is not known: quarantined")
    SESSION_FREED = (INFO, "the session has left quarantine")
    TURN_SUBMITTED = (INFO, "a turn was submitted")
    TURN_TAKEN_UP = (INFO, "a turn that nobody answered for was taken up")
    TURN_OVER = (INFO, "a turn is over")
    TURN_NOT_CROSSED_OUT = (DEBUG, "that the turn is over was not written down")
    TURN_NOT_PARTED = (WARNING, "a turn could not be parted with at exit")
    STOP_ASKED = (INFO, "a turn is to stop")
    STOP_CONFIRMED = (INFO, "a stop is confirmed: nothing of the turn runs")
    OUTAGE_BEGAN = (WARNING, "a turn cannot be observed now")
    OUTAGE_OVER = (INFO, "the turn can be observed again")
    # approvals
    APPROVAL_ASKED = (INFO, "OpenCode asks for an approval")
    APPROVAL_ANSWERED = (INFO, "an approval was answered")
    # ends
    END_ACCEPTED = (INFO, "the end of a session was accepted")
    END_ATTEMPT_FAILED = (DEBUG, "an attempt to end did not come through")
    END_CONFIRMED = (INFO, "a session has ended")
    END_UNCONFIRMED = (WARNING, "an end is not confirmed, and is tried again")
    LEASE_TAKEN_OVER = (WARNING, "the holder of a lease does not renew it: taken over")
    LEASE_NOT_RENEWED = (WARNING, "a lease was not renewed")
    # what goes on in the background
    WORK_PUT_OFF = (INFO, "unfinished work is tried again later")
    WORK_UNREADABLE = (WARNING, "unfinished work cannot be read")
    UNTRACKED_SESSION_DELETED = (INFO, "a session that was created and never tracked was deleted")
    # OpenCode
    OPENCODE_ATTACHED = (INFO, "attached to an OpenCode")
    OPENCODE_STARTED = (INFO, "a managed OpenCode was started")
    OPENCODE_JOINED = (INFO, "a managed OpenCode that was running was joined")
    OPENCODE_START_FAILED = (WARNING, "a managed OpenCode did not come up")
    OPENCODE_LEFT = (INFO, "a managed OpenCode was let go of; it stops if nobody else uses it")
    OPENCODE_DIED = (
        WARNING,
        "the managed OpenCode of this server is gone; the next call starts one",
    )
    OPENCODE_GONE = (INFO, "a managed OpenCode is proven to be gone")
    FOLDER_DISPOSED = (WARNING, "a folder was poisoned in OpenCode, and disposed")
    FOLDER_LET_GO = (DEBUG, "a folder that nobody uses was disposed in OpenCode: memory")
    EVENTS_LOST = (WARNING, "no event stream of an OpenCode now")
    EVENTS_STILL_LOST = (DEBUG, "still no event stream of an OpenCode")
    EVENTS_BACK = (INFO, "the event stream of an OpenCode is back")
    REQUEST_REPEATED = (DEBUG, "a request to OpenCode is repeated")
    # content
    PROMPT = (INFO, "the prompt")
    ANSWER = (INFO, "the answer")

    @property
    def level(self) -> int:
        """The level of its lines."""
        return self.value[0]


def tell(log: logging.Logger, event: Event, **fields: object) -> None:
    """Log an event; fields that are None are left out."""
    level, words = event.value
    if log.isEnabledFor(level):
        log.log(level, words, extra=_extra(event, fields))


def tell_failure(log: logging.Logger, failure: BaseException, **fields: object) -> None:
    """Log a bug of ours, with its traceback."""
    extra = _extra(Event.UNEXPECTED_FAILURE, fields)
    log.error(Event.UNEXPECTED_FAILURE.value[1], extra=extra, exc_info=failure)


def tell_content(event: Event, text: str, **fields: object) -> None:
    """Log what was said, its beginning at least, where `LOG_CONTENT` allows that."""
    tell(_content, event, chars=len(text), text=text[:CONTENT_CHARS], **fields)


def _extra(event: Event, fields: Mapping[str, object]) -> dict[str, object]:
    there = {name: value for name, value in fields.items() if value is not None}
    return {"event": event.name.lower(), **there}


def current_ids() -> Mapping[str, object]:
    """Return the ids of what is done now."""
    return _ids.get()


@contextmanager
def concerning(**ids: object) -> Iterator[None]:
    """Add ids to all lines that are logged while the block runs, and by tasks begun in it."""
    with only_concerning(**{**_ids.get(), **ids}):
        yield


@contextmanager
def only_concerning(**ids: object) -> Iterator[None]:
    """Replace the ids while the block runs."""
    token = _ids.set({name: value for name, value in ids.items() if value is not None})
    try:
        yield
    finally:
        _ids.reset(token)

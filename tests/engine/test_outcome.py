"""What a turn came to: the table of cases, each from evidence alone."""

from __future__ import annotations

import pytest

from opencode_mcp.engine.outcome import Unread, Verdict
from opencode_mcp.records import StopReason
from tests.engine.make import (
    ABORTED,
    ASK,
    BUSY,
    CALLED,
    SAID,
    START_MS,
    assistant,
    error,
    go_on,
    invalid,
    judged,
    reasoning,
    summary,
    text,
    tool,
    user,
)

_DEAD = assistant(text(""), finish=None, completed=False)
_NO_TRACE = assistant(finish=None)
_CUT = assistant(error=ABORTED, finish=None)
_INTERRUPTED = assistant(
    error=error("UnknownError", message="All fibers interrupted without error"), finish=None
)
_BROKEN = assistant(error=error("APIError"), finish=None)
_REJECTED = assistant(tool("error"), finish="tool-calls")
_LATER = START_MS + 60_000

_CASES = {
    # it came to its end
    "stop": (judged(user(), SAID), "completed", None),
    "length": (judged(user(), assistant(text("hi"), finish="length")), "completed", None),
    "provider-word-finish": (
        judged(user(), assistant(text("hi"), finish="eos")),
        "completed",
        None,
    ),
    "finish-other": (judged(user(), assistant(text("hi"), finish="other")), "completed", None),
    "finish-unknown-and-idle-for-good": (
        judged(user(), assistant(text("hi"), finish="unknown")),
        "completed",
        None,
    ),
    "finish-unknown-and-opencode-will-ask-again": (
        judged(user(), assistant(text("hi"), finish="unknown"), settled=False),
        "running",
        None,
    ),
    "tools-then-an-answer": (judged(user(), CALLED, assistant(text("ok"))), "completed", None),
    "no-text-but-effects": (judged(user(), CALLED, assistant()), "completed", None),
    "provider-runs-its-tool": (
        judged(
            user(),
            assistant(tool("completed") | {"metadata": {"providerExecuted": True}}, text("found")),
        ),
        "completed",
        None,
    ),
    # it came to nothing
    "empty": (judged(user(), assistant()), "failed", "EMPTY_RESPONSE"),
    "white-space": (judged(user(), assistant(text(" \n\t"))), "failed", "EMPTY_RESPONSE"),
    "reasoning-only": (judged(user(), assistant(reasoning("hm"))), "failed", "EMPTY_RESPONSE"),
    "only-opencodes-own-text": (
        judged(user(), assistant(text("note", synthetic=True))),
        "failed",
        "EMPTY_RESPONSE",
    ),
    "only-ignored-text": (
        judged(user(), assistant(text("note", ignored=True))),
        "failed",
        "EMPTY_RESPONSE",
    ),
    "only-a-call-that-was-none": (
        judged(user(), assistant(invalid(), finish="tool-calls"), assistant()),
        "failed",
        "EMPTY_RESPONSE",
    ),
    # the provider or OpenCode failed
    "content-filter-finish": (
        judged(user(), assistant(text("hi"), finish="content-filter")),
        "failed",
        "UPSTREAM_ERROR",
    ),
    "content-filter-error": (
        judged(user(), assistant(text("hi"), error=error("ContentFilterError"), finish=None)),
        "failed",
        "UPSTREAM_ERROR",
    ),
    **{
        f"error-{name}": (
            judged(user(), assistant(error=error(name), finish=None)),
            "failed",
            "UPSTREAM_ERROR",
        )
        for name in (
            "APIError",
            "ProviderAuthError",
            "ContextOverflowError",
            "MessageOutputLengthError",
            "StructuredOutputError",
            "UnknownError",
            "SomethingNewError",
        )
    },
    "error-after-tools": (judged(user(), CALLED, _BROKEN), "failed", "UPSTREAM_ERROR"),
    "error-in-a-compaction": (
        judged(user(), _NO_TRACE, *summary(error=error("ContextOverflowError"), finish=None)),
        "failed",
        "UPSTREAM_ERROR",
    ),
    # it never came to an end
    "tool-calls-without-an-end": (judged(user(), _REJECTED), "failed", "TURN_INCOMPLETE"),
    "stop-with-tool-calls-without-an-end": (
        judged(user(), assistant(text("on it"), tool("completed"), finish="stop")),
        "failed",
        "TURN_INCOMPLETE",
    ),
    "stop-with-tool-calls-goes-on": (
        judged(user(), assistant(text("on it"), tool("completed")), settled=False),
        "running",
        None,
    ),
    "killed-server": (judged(user(), _DEAD), "failed", "TURN_INCOMPLETE"),
    "killed-server-just-now": (judged(user(), _DEAD, settled=False), "running", None),
    "wrong-model": (judged(user()), "failed", "TURN_INCOMPLETE"),
    "prompt-never-seen": (judged(), "failed", "TURN_INCOMPLETE"),
    "prompt-not-seen-yet": (judged(settled=False), "running", None),
    "not-begun-yet": (judged(user(), settled=False), "running", None),
    # it is going on
    "busy": (judged(user(), status=BUSY), "running", None),
    "busy-after-a-final-message": (judged(user(), SAID, status=BUSY), "running", None),
    "busy-long-after-a-final-message": (
        judged(user(), SAID, status=BUSY, overdue_busy=True),
        "completed",
        None,
    ),
    "busy-long-without-a-final-message": (
        judged(user(), CALLED, status=BUSY, overdue_busy=True),
        "running",
        None,
    ),
    "asks": (judged(user(), status=BUSY, pending=(ASK,)), "waiting_for_approval", None),
    "stopping": (judged(user(), status=BUSY, stop=StopReason.CANCEL), "stopping", None),
    "stopping-while-it-asks": (
        judged(user(), status=BUSY, pending=(ASK,), stop=StopReason.CANCEL),
        "stopping",
        None,
    ),
    # it was stopped
    "aborted-by-us": (judged(user(), _CUT, stop=StopReason.CANCEL), "cancelled", None),
    "aborted-by-an-end": (judged(user(), _CUT, stop=StopReason.END), "cancelled", None),
    "aborted-by-somebody": (
        judged(user(), assistant(text("par"), error=ABORTED, finish=None)),
        "cancelled",
        None,
    ),
    "aborted-at-its-limit": (
        judged(user(), _CUT, stop=StopReason.TIMEOUT),
        "timeout",
        "TURN_INCOMPLETE",
    ),
    "aborted-in-a-loop": (
        judged(user(), _CUT, stop=StopReason.LOOP),
        "failed",
        "UPSTREAM_RESPONSE_LOOP",
    ),
    "aborted-as-a-fiber": (judged(user(), _INTERRUPTED, stop=StopReason.CANCEL), "cancelled", None),
    "a-fiber-dies-by-itself": (judged(user(), _INTERRUPTED), "failed", "UPSTREAM_ERROR"),
    "aborted-in-a-retry-leaves-no-trace": (
        judged(user(), _NO_TRACE, stop=StopReason.CANCEL),
        "cancelled",
        None,
    ),
    "aborted-in-a-retry-not-settled": (
        judged(user(), _NO_TRACE, stop=StopReason.CANCEL, settled=False),
        "stopping",
        None,
    ),
    "aborted-in-a-retry-by-somebody": (judged(user(), _NO_TRACE), "failed", "TURN_INCOMPLETE"),
    "aborted-before-it-was-seen": (judged(stop=StopReason.CANCEL), "cancelled", None),
    "finished-before-the-abort": (judged(user(), SAID, stop=StopReason.CANCEL), "completed", None),
    "failed-before-the-abort": (
        judged(user(), _BROKEN, stop=StopReason.CANCEL),
        "failed",
        "UPSTREAM_ERROR",
    ),
    "finished-and-then-an-abort-error": (  # case 42
        judged(user(), assistant(text("hi"), error=ABORTED), stop=StopReason.CANCEL),
        "cancelled",
        None,
    ),
    # a compaction in the middle
    "a-compaction-is-not-an-answer": (judged(user(), *summary()), "failed", "TURN_INCOMPLETE"),
    "compaction-then-nothing-yet": (
        judged(user(), _NO_TRACE, *summary(), settled=False),
        "running",
        None,
    ),
    "compaction-then-going-on": (
        judged(user(), _NO_TRACE, *summary(), go_on(), assistant(text("done"))),
        "completed",
        None,
    ),
    "compaction-then-the-prompt-again": (
        judged(user(), _NO_TRACE, *summary(), user(at_ms=_LATER), assistant(text("done"))),
        "completed",
        None,
    ),
    "aborted-in-a-compaction": (
        judged(user(), CALLED, *summary(error=ABORTED, finish=None), stop=StopReason.CANCEL),
        "cancelled",
        None,
    ),
    # other turns of the session
    "a-later-turn-does-not-answer-a-stopped-one": (
        judged(user(), _NO_TRACE, user(), assistant(text("later")), stop=StopReason.CANCEL),
        "cancelled",
        None,
    ),
    "a-later-turn-does-not-answer-a-dead-one": (
        judged(user(), _DEAD, user(at_ms=_LATER), assistant(text("later"), at_ms=_LATER + 1)),
        "failed",
        "TURN_INCOMPLETE",
    ),
    "a-later-turn-does-not-answer-a-rejected-one": (
        judged(user(), _REJECTED, user(at_ms=_LATER), assistant(text("later"), at_ms=_LATER + 1)),
        "failed",
        "TURN_INCOMPLETE",
    ),
    "somebody-steers-the-running-turn": (
        judged(user(), CALLED, user(at_ms=START_MS + 150), assistant(text("both"))),
        "completed",
        None,
    ),
    # what could not be read
    "newest-message-too-large": (
        judged(user(), unread=Unread.NEWEST),
        "failed",
        "UPSTREAM_RESPONSE_TOO_LARGE",
    ),
    "newest-message-too-large-and-an-older-end": (
        judged(user(), SAID, unread=Unread.NEWEST),
        "failed",
        "UPSTREAM_RESPONSE_TOO_LARGE",
    ),
    "newest-message-too-large-and-busy": (
        judged(user(), status=BUSY, unread=Unread.NEWEST),
        "running",
        None,
    ),
    "newest-message-too-large-and-stopped": (
        judged(user(), stop=StopReason.CANCEL, unread=Unread.NEWEST),
        "cancelled",
        None,
    ),
    "an-earlier-message-too-large": (
        judged(user(), SAID, unread=Unread.EARLIER),
        "completed",
        None,
    ),
}


@pytest.mark.parametrize(
    ("verdict", "status", "name"), [pytest.param(*case, id=word) for word, case in _CASES.items()]
)
def test_a_turn_is_judged_by_its_evidence(verdict: Verdict, status: str, name: str | None) -> None:
    assert verdict.status == status
    assert (verdict.failure.name if verdict.failure else None) == name
    assert verdict.is_over == (verdict.resend_safety is not None)

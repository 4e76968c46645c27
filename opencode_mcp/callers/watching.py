"""Watch a turn for as long as a call may, and answer with what is known then."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from opencode_mcp.callers.eliciting import attend, is_for_a_person, may_ask, person_of
from opencode_mcp.callers.presenting import iso, present_turn
from opencode_mcp.callers.progress import INTERVAL_S
from opencode_mcp.callers.sizing import short
from opencode_mcp.engine.outcome import TurnStatus
from opencode_mcp.records import ExitAction

if TYPE_CHECKING:
    from mcp_types import InputRequiredResult

    from opencode_mcp.callers.eliciting import Person
    from opencode_mcp.callers.progress import Reporter
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.engine import Engine
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.outcome import Verdict

_EXIT = "this server is shutting down"
_AT_EXIT = {
    ExitAction.ABORT: f"{_EXIT} and stops the turn; the session stays",
    ExitAction.END: f"{_EXIT}, stops the turn and ends the session",
    ExitAction.KEEP: f"{_EXIT}; the turn runs on",
}


async def watch_turn(  # noqa: PLR0913 - a turn, who watches it, and for how long
    engine: Engine,
    keeper: Keeper,
    reporter: Reporter,
    wait_s: float,
    max_chars: int,
    *,
    owns: bool,
    answers: bool = True,
    returns_open: bool = True,
) -> Result | InputRequiredResult:
    """Wait until the turn is over or waits for the caller, at most `wait_s`, and present it.

    What a person must answer is asked meanwhile; where that means returning, it does.

    If the client cancels the call that owns the turn (`owns`), the operator's rule decides about
    the turn; a call that merely watches only lets go. Whose session it is not (`answers` false)
    is not asked what its owner's person must answer. A call that cannot be followed by another
    (`returns_open` false) has rejected what its person cannot be asked any more.
    """
    person = person_of(reporter.context)
    try:
        watching = _watch(
            engine, keeper, person, reporter, wait_s, answers=answers, returns_open=returns_open
        )
        asked = await engine.closing.until(watching)
    except asyncio.CancelledError:
        if owns:
            engine.call_cancelled(keeper)
        raise
    return asked or present_keeper(engine, keeper, max_chars=max_chars)


async def _watch(  # noqa: PLR0913 - as watch_turn
    engine: Engine,
    keeper: Keeper,
    person: Person | None,
    reporter: Reporter,
    wait_s: float,
    *,
    answers: bool,
    returns_open: bool,
) -> InputRequiredResult | None:
    """Wait until there is something to say; return what a person must be asked by returning it."""
    clock = engine.clock
    started = clock.monotonic()
    if wait_s > 0:
        await reporter.tell(0.0, f"turn {keeper.turn.number} of {keeper.session.id} is running")

    def is_to_ask() -> bool:
        return answers and is_for_a_person(keeper) and (may_ask(person) or not returns_open)

    while (is_to_ask() or not is_news(keeper)) and (
        (left := started + wait_s - clock.monotonic()) > 0
    ):
        if is_to_ask():
            asked = await attend(keeper, person, reporter, left)
            if asked is not None:
                return asked
        elif not await keeper.changed(min(INTERVAL_S, left)):
            await reporter.tell(clock.monotonic() - started, describe(keeper))
    return None


def present_keeper(engine: Engine, keeper: Keeper, *, max_chars: int) -> Result:
    """Return the result for a turn as its keeper knows it."""
    now = engine.clock.now()
    verdict = verdict_now(engine, keeper)
    result = present_turn(keeper.session, keeper.turn, verdict, max_chars=max_chars, now=now)
    if keeper.trouble and not keeper.verdict.is_over:
        result["executionState"] = "unknown"
        result["upstreamRead"] = {
            "state": "degraded",
            "reason": short(keeper.trouble.reason),
            "since": iso(keeper.trouble.since),
            "nextAt": iso(keeper.trouble.next_at),
        }
    return result


def verdict_now(engine: Engine, keeper: Keeper) -> Verdict:
    """Return what is known of a turn, with what our exit means for it: nobody can ask us then."""
    verdict = keeper.verdict
    if verdict.is_over or not engine.closing.is_begun:
        return verdict
    action = engine.limits.on_exit if keeper.is_owned else ExitAction.KEEP
    note = ("SHUTTING_DOWN", _AT_EXIT[action])
    return replace(verdict, warnings=(*verdict.warnings, note))


def is_news(keeper: Keeper) -> bool:
    """Whether there is something for the caller to act on."""
    return keeper.verdict.is_over or keeper.verdict.status is TurnStatus.WAITING


def describe(keeper: Keeper) -> str:
    """Return what is going on, in a line that a person likes to read."""
    if keeper.trouble:
        return f"OpenCode cannot be asked now: {keeper.trouble.reason}"
    if keeper.verdict.retry and keeper.verdict.retry.message:
        return f"the provider is being retried: {keeper.verdict.retry.message}"
    watch = keeper.watch
    if watch is not None and watch.activity:
        return watch.activity
    if watch is not None and watch.text_chars:
        return f"writing its answer ({watch.text_chars} characters so far)"
    return "thinking"

"""Watch a turn for as long as a call may, and answer with what is known then."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from opencode_mcp.callers.doing import describe
from opencode_mcp.callers.eliciting import attend, is_for_a_person, may_ask, person_of
from opencode_mcp.callers.moments import iso
from opencode_mcp.callers.presenting import present_turn
from opencode_mcp.callers.sizing import short
from opencode_mcp.engine.outcome import TurnStatus
from opencode_mcp.records import ExitAction

if TYPE_CHECKING:
    from mcp_types import InputRequiredResult

    from opencode_mcp.callers.eliciting import Person
    from opencode_mcp.callers.progress import Reporter
    from opencode_mcp.callers.shown import Shown
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import Degraded
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
    shown: Shown,
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
            engine.owning.call_cancelled(keeper, reporter.call)
        raise
    await engine.structures.complete(keeper)
    return asked or present_keeper(engine, keeper, shown)


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
    reporter.begin(clock)
    if wait_s > 0:
        await reporter.tell(f"turn {keeper.turn.number} of {keeper.session.id} is running")

    def is_to_ask() -> bool:
        return answers and is_for_a_person(keeper) and (may_ask(person) or not returns_open)

    while (is_to_ask() or not is_news(keeper)) and (
        (left := started + wait_s - clock.monotonic()) > 0
    ):
        if is_to_ask():
            asked = await attend(keeper, person, reporter, left)
            if asked is not None:
                return asked
        else:
            await keeper.changed(min(reporter.due_s, left))
            await reporter.tell_if_due(describe(keeper, clock))
    return None


def present_keeper(engine: Engine, keeper: Keeper, shown: Shown) -> Result:
    """Return the result for a turn as its keeper knows it."""
    return present_turn(
        keeper.session,
        keeper.turn,
        verdict_now(engine, keeper),
        shown,
        now=engine.clock.now(),
        upstream_read=_degraded(keeper),
    )


def _degraded(keeper: Keeper) -> Degraded | None:
    """Return why OpenCode cannot be asked about a turn that goes on."""
    if keeper.trouble is None or keeper.verdict.is_over:
        return None
    return {
        "state": "degraded",
        "reason": short(keeper.trouble.reason),
        "since": iso(keeper.trouble.since),
        "nextAt": iso(keeper.trouble.next_at),
    }


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

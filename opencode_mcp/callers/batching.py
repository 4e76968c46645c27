"""Watch several turns at once: until one has news, or all have, or the time is up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from opencode_mcp.callers.answers import present_error
from opencode_mcp.callers.batch_result import Member, present_batch
from opencode_mcp.callers.doing import describe_several
from opencode_mcp.callers.presenting import present_view
from opencode_mcp.errors import OpencodeMcpError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opencode_mcp.callers.progress import Reporter
    from opencode_mcp.callers.shown import Shown
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.engine import Engine
    from opencode_mcp.records import Principal


class Batch:
    """The sessions of one call."""

    def __init__(
        self,
        engine: Engine,
        asker: Principal,
        references: list[str],
        wait_for: Literal["any", "all"],
        shown: Shown,
    ) -> None:
        self._engine = engine
        self._asker = asker
        self._references = references
        self._wait_for = wait_for
        self._shown = shown

    async def observe(self, reporter: Reporter, wait_s: float) -> Result:
        """Watch them for at most `wait_s` seconds and present them."""
        until = self._engine.clock.monotonic() + wait_s
        members = await self._look(self._references)
        await self._engine.closing.until(self._watch(members, reporter, until))
        complete = self._engine.structures.complete
        await asyncio.gather(*(complete(member.keeper) for member in members if member.keeper))
        return present_batch(
            self._engine,
            members,
            self._shown,
            wait_for=self._wait_for,
            is_met=self._is_met(members),
        )

    async def _watch(self, members: list[Member], reporter: Reporter, until: float) -> None:
        """Wait for what the call waits for; `members` are kept as they are known then."""
        clock = self._engine.clock
        reporter.begin(clock)
        if until > clock.monotonic() and not self._is_met(members):
            await reporter.tell(_summary(members, clock))
        while not self._is_met(members) and (left := until - clock.monotonic()) > 0:
            if not await _news_of(members, min(reporter.due_s, left)):
                members[:] = await self._again(members)
            await reporter.tell_if_due(_summary(members, clock))

    def _is_met(self, members: Iterable[Member]) -> bool:
        judge = all if self._wait_for == "all" else any
        return judge(member.is_ready for member in members)

    async def _look(self, references: list[str]) -> list[Member]:
        return list(await asyncio.gather(*(self._member(reference) for reference in references)))

    async def _again(self, members: list[Member]) -> list[Member]:
        """Look again at those that nobody observes and that were not clear."""
        unclear = [m.reference for m in members if m.keeper is None and not m.is_ready]
        anew = {member.reference: member for member in await self._look(unclear)}
        return [anew.get(member.reference, member) for member in members]

    async def _member(self, reference: str) -> Member:
        try:
            view = await self._engine.view(reference, self._asker)
        except OpencodeMcpError as error:
            result = present_error(error)
            result["sessionId"] = result["threadId"] = reference
            return Member(reference, result)
        result = present_view(view, self._shown, now=self._engine.clock.now())
        is_over = view.verdict is None or view.verdict.is_over
        return Member(reference, result, view, None if is_over else view.keeper)


async def _news_of(members: list[Member], timeout_s: float) -> bool:
    """Wait until one of the running turns has news, at most `timeout_s`; whether one has."""
    keepers = [member.keeper for member in members if member.keeper and not member.is_ready]
    if not keepers:
        await asyncio.sleep(timeout_s)
        return False
    waits = [asyncio.ensure_future(keeper.changed(timeout_s)) for keeper in keepers]
    try:
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        return any(wait.result() for wait in done)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


def _summary(members: list[Member], clock: Clock) -> str:
    ready = sum(member.is_ready for member in members)
    running = [m.keeper for m in members if m.keeper is not None and not m.is_ready]
    return describe_several(f"{ready} of {len(members)} have news", running, clock)

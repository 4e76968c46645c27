"""Watch several turns at once: until one has news, or all have, or the time is up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from opencode_mcp.callers.answers import present_error
from opencode_mcp.callers.presenting import present_view
from opencode_mcp.callers.progress import INTERVAL_S
from opencode_mcp.callers.sizing import clip, fit
from opencode_mcp.callers.watching import describe, is_news, present_keeper
from opencode_mcp.errors import OpencodeMcpError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opencode_mcp.callers.progress import Reporter
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import Entry
    from opencode_mcp.engine.engine import Engine
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.records import Principal

#: of all contents together: each is in the text and in its entry (contract §3: 45,000 in all)
_CONTENT_CHARS = 16_000
#: what stands around an answer: where the turn stands, and the next call
_FRAME_CHARS = 600
_LEAST_CHARS = 200
#: nothing to act on: the turn goes on, or nobody knows
_PENDING = frozenset({"running", "stopping", "unknown"})


@dataclass(slots=True)
class Member:
    """One session of a batch: what is known of it, and its keeper while its turn runs."""

    reference: str
    result: Result
    keeper: Keeper | None = None

    @property
    def is_ready(self) -> bool:
        """Whether there is something for the caller to act on."""
        if self.keeper is not None:
            return is_news(self.keeper)
        return self.result["status"] not in _PENDING


class Batch:
    """The sessions of one call."""

    def __init__(
        self,
        engine: Engine,
        asker: Principal,
        references: list[str],
        wait_for: Literal["any", "all"],
    ) -> None:
        self._engine = engine
        self._asker = asker
        self._references = references
        self._wait_for = wait_for

    async def observe(self, reporter: Reporter, wait_s: float) -> Result:
        """Watch them for at most `wait_s` seconds and present them."""
        started = self._engine.clock.monotonic()
        members = await self._look(self._references)
        until = started + wait_s
        await self._engine.closing.until(self._watch(members, reporter, started, until))
        return self._present(members)

    async def _watch(
        self, members: list[Member], reporter: Reporter, started: float, until: float
    ) -> None:
        """Wait for what the call waits for; `members` are kept as they are known then."""
        clock = self._engine.clock
        while not self._is_met(members) and (left := until - clock.monotonic()) > 0:
            if not await _news_of(members, min(INTERVAL_S, left)):
                await reporter.tell(clock.monotonic() - started, _summary(members))
                members[:] = await self._again(members)

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
        chars = self._chars
        result = present_view(view, max_chars=chars, now=self._engine.clock.now())
        is_over = view.verdict is None or view.verdict.is_over
        return Member(reference, result, None if is_over else view.keeper)

    @property
    def _chars(self) -> int:
        """How long one answer may be."""
        return max(_LEAST_CHARS, self._entry_chars - _FRAME_CHARS)

    @property
    def _entry_chars(self) -> int:
        return _CONTENT_CHARS // len(self._references)

    def _present(self, members: list[Member]) -> Result:
        met = self._is_met(members)
        entries = [self._entry(member) for member in members]
        ready = [member.reference for member in members if member.is_ready]
        head = f"{'ready' if met else 'waiting'}: {len(ready)} of {len(members)} have news"
        result: Result = {
            "kind": "batch",
            "status": "ready" if met else "waiting",
            "content": "\n\n".join([head, *map(_paragraph, members, entries)]),
            "waitFor": self._wait_for,
            "reason": "condition" if met else "deadline",
            "results": entries,
            "readyIds": ready,
            "pendingIds": [m.reference for m in members if not m.is_ready],
        }
        return fit(result)

    def _entry(self, member: Member) -> Entry:
        result = member.result
        if member.keeper is not None:
            result = present_keeper(self._engine, member.keeper, max_chars=self._chars)
        kept = {name: result[name] for name in _KEPT if name in result}  # type: ignore[literal-required]
        kept["content"], cut = clip(result["content"], self._entry_chars)
        if cut:
            kept["truncated"] = True
        return cast("Entry", kept)


def _paragraph(member: Member, entry: Entry) -> str:
    """Return what the text says of one session; its id stands first, so that it is never cut."""
    return f"{member.reference} · {entry['status']}\n{entry['content']}"


_KEPT = (
    "kind",
    "status",
    "sessionId",
    "threadId",
    "turnId",
    "turn",
    "pendingApprovals",
    "pendingApprovalCount",
    "error",
    "elapsedMs",
    "truncated",
)


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


def _summary(members: list[Member]) -> str:
    ready = sum(member.is_ready for member in members)
    running = [m.keeper for m in members if m.keeper is not None and not m.is_ready]
    doing = f"; {describe(running[0])}" if running else ""
    return f"{ready} of {len(members)} have news{doing}"

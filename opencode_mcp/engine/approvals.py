"""What happens to a turn's asks while it runs: since when they wait, and who says no in time.

Kept by the turn's keeper, so that it happens whether or not a call watches. An ask is rejected

    never        at once, with a reason for the model
    on-request   by the person at the client, through a call that watches; else at its deadline
    caller       with opencode-approve; else at its deadline

OpenCode rejects all asks of a session with one of them, and only that one's reason reaches the
model: then the turn ends (facts 5.4, tried). So a rejection is noted for all that it took along.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from opencode_mcp.engine import telling
from opencode_mcp.engine.answers import Allow, Answer, Ask, Reject, send_answer
from opencode_mcp.engine.outcome import AskTimes, TurnStatus
from opencode_mcp.opencode.models import PermissionRequest
from opencode_mcp.records import AnsweredBy, ApprovalPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opencode_mcp.clock import Clock
    from opencode_mcp.engine.effects import ToolCall
    from opencode_mcp.engine.outcome import Verdict
    from opencode_mcp.engine.reading import Tree
    from opencode_mcp.opencode.client import OpencodeClient

REJECTED = "APPROVAL_REJECTED"
#: of a warning: how many asks it names, and how much of each
_NAMED = 5
_NAME_CHARS = 80

#: begins every reason that reaches the model, so that it can be found again in the history
MARK = "Rejected without a person's decision:"
_GO_ON = "Go on without it, or say in your answer what you would need."

NEVER = "the session's approval policy is never"


def for_model(why: str) -> str:
    """Return the message that lets the turn go on after a rejection (facts 5.3)."""
    return f"{MARK} {why}. {_GO_ON}"


@dataclass(frozen=True, slots=True)
class Waiting:
    """An ask that waits: where it is answered, and until when."""

    ask: Ask
    directory: str
    times: AskTimes
    #: on the monotonic clock, seconds
    deadline: float


@dataclass(slots=True)
class Approvals:
    """The asks of one turn. `timeout_s`: how long one may wait after it was first seen."""

    policy: ApprovalPolicy
    clock: Clock
    timeout_s: float
    #: of the session and the turn, for the log
    ids: Mapping[str, str | None] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    #: what was said through us, by the ask's id
    answered: dict[str, Answer] = field(default_factory=dict)
    _rejected: list[tuple[Ask, str]] = field(default_factory=list)
    #: asks that the log has heard of
    _told: set[str] = field(default_factory=set)
    #: which asks are being shown to a person, and until when that counts (monotonic seconds)
    _shown: dict[str, float] = field(default_factory=dict)

    def saw(self, asks: Sequence[Ask], tree: Tree) -> None:
        """Take note of what waits now; what was known keeps its times."""
        now, moment = self.clock.monotonic(), self.clock.now()
        limit = timedelta(seconds=self.timeout_s)
        self.waiting = {
            ask.id: self.waiting.get(ask.id)
            or Waiting(
                ask,
                tree.directory_of[ask.session_id],
                AskTimes(moment, moment + limit),
                now + self.timeout_s,
            )
            for ask in asks
            if ask.id not in self.answered  # a list that was read before the answer was sent
        }

    def tell_news(self) -> None:
        """Tell the log of asks that are new."""
        for ask in self.asks:
            if ask.id not in self._told:
                self._told.add(ask.id)
                telling.ask_seen(self.ids, ask)

    @property
    def asks(self) -> list[Ask]:
        """What waits."""
        return [one.ask for one in self.waiting.values()]

    def saw_none(self) -> None:
        """Take note that nothing waits."""
        self.waiting = {}

    def left_s(self) -> float:
        """Return how long it is until the next deadline, in seconds; infinite if nothing waits."""
        now = self.clock.monotonic()
        return min((one.deadline - now for one in self.waiting.values()), default=float("inf"))

    async def reject_due(self, client: OpencodeClient) -> bool:
        """Reject what must not wait any longer; whether anything was. Raises OpencodeError."""
        now = self.clock.monotonic()
        never = self.policy is ApprovalPolicy.NEVER
        why = NEVER if never else f"nobody answered within {self.timeout_s:g} s"
        by = AnsweredBy.POLICY if never else AnsweredBy.DEADLINE
        due = [one.ask.id for one in self.waiting.values() if never or one.deadline <= now]
        for ask_id in due:
            await self.reject(client, ask_id, why, by=by)
        return bool(due)

    async def reject(
        self,
        client: OpencodeClient,
        ask_id: str,
        why: str,
        message: str | None = None,
        *,
        by: AnsweredBy,
    ) -> bool:
        """Reject an ask for the reason `why`, which a warning will tell.

        `message` goes to the model instead of the reason itself. A question takes none, and ends
        its turn. False: it did not wait any more. Raises OpencodeError.
        """
        waiting = self.waiting.get(ask_id)
        if waiting is None:
            return False
        takes_one = isinstance(waiting.ask, PermissionRequest)
        text = (message or for_model(why)) if takes_one else None
        return await self.answer(client, ask_id, Reject(text), why, by=by)

    async def answer(
        self,
        client: OpencodeClient,
        ask_id: str,
        answer: Answer,
        why: str | None = None,
        *,
        by: AnsweredBy,
    ) -> bool:
        """Answer an ask that was seen waiting. False: it did not, any more. Raises OpencodeError.

        `why`: for a warning in the turn's result, where it was not the caller who said no.
        """
        waiting = self.waiting.get(ask_id)
        if waiting is None:
            return False
        taken = [waiting, *self._taken_along(waiting.ask, answer)]
        # Noted before it is sent: the turn may be over, and judged, before we see the ask gone.
        notes = [(one.ask, why) for one in taken if why is not None]
        self._rejected += notes
        done = False
        try:
            done = await send_answer(client, waiting.ask, waiting.directory, answer, self.clock)
        finally:
            if not done:
                self._rejected = [one for one in self._rejected if all(one is not n for n in notes)]
        if done:
            self.answered[ask_id] = answer
            for one in taken:
                telling.ask_answered(self.ids, one.ask, by, allowed=isinstance(answer, Allow))
        for one in taken if done else [waiting]:
            self.waiting.pop(one.ask.id, None)
        return done

    def _taken_along(self, ask: Ask, answer: Answer) -> list[Waiting]:
        """Return the other asks that OpenCode rejects with this one (facts 5.4)."""
        if isinstance(answer, Allow):
            return []
        return [
            one
            for one in self.waiting.values()
            if one.ask.session_id == ask.session_id
            and type(one.ask) is type(ask)
            and one.ask.id != ask.id
        ]

    def next_to_show(self) -> Waiting | None:
        """Return what a person may be asked next; None while one is asked: one at a time."""
        now = self.clock.monotonic()
        if any(until > now for i, until in self._shown.items() if i in self.waiting):
            return None
        return next(iter(self.waiting.values()), None)

    def show(self, ask_id: str, for_s: float) -> None:
        """Note that a person is being asked; other calls leave it alone for `for_s` seconds."""
        self._shown[ask_id] = self.clock.monotonic() + for_s

    def hide(self, ask_id: str) -> None:
        """Note that a person is not being asked any more."""
        self._shown.pop(ask_id, None)

    def annotated(self, verdict: Verdict) -> Verdict:
        """Return the verdict with since when its asks wait, and with what was rejected.

        Where nobody is asked, an ask is no state of its own: it is about to be rejected.
        """
        if verdict.status is TurnStatus.WAITING and self.policy is ApprovalPolicy.NEVER:
            verdict = replace(verdict, status=TurnStatus.RUNNING, pending=())
        times: Mapping[str, AskTimes] = {i: w.times for i, w in self.waiting.items()}
        warnings = verdict.warnings + self._warnings(verdict.tool_calls)
        return replace(verdict, ask_times=times, warnings=warnings)

    def _warnings(self, calls: Sequence[ToolCall]) -> tuple[tuple[str, str], ...]:
        by_reason: dict[str, list[str]] = {}
        for ask, why in self._rejected:
            by_reason.setdefault(why, []).append(name_of(ask))
        if not by_reason:  # rejected by another process, or before a restart: the history tells
            for call in calls:
                _, found, why = (call.reason or "").partition(MARK)
                if found:
                    why = why.strip().removesuffix(_GO_ON).strip().removesuffix(".")
                    by_reason.setdefault(why, []).append(call.tool)
        return tuple((REJECTED, _told(names, why)) for why, names in by_reason.items())


def name_of(ask: Ask) -> str:
    """Return what is asked, in a few words."""
    if isinstance(ask, PermissionRequest):
        what = " ".join([ask.permission, *ask.patterns[:2]])
    else:
        what = f"question: {ask.questions[0].question if ask.questions else ''}"
    return what if len(what) <= _NAME_CHARS else what[: _NAME_CHARS - 1] + "…"


def _told(names: Sequence[str], why: str) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    asks = "1 ask was" if len(names) == 1 else f"{len(names)} asks were"
    return f"{asks} rejected, because {why}: {'; '.join(names[:_NAMED])}{more}"


def is_same(one: Answer | None, other: Answer) -> bool:
    """Whether both say yes, or both say no."""
    return one is not None and isinstance(one, Allow) == isinstance(other, Allow)

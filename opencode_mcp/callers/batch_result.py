"""The result of a batch: all of its turns within one budget, shared fairly (contract §3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

from opencode_mcp.callers.presenting import present_view
from opencode_mcp.callers.sizing import (
    ERROR_CHARS,
    MAX_RESULT_CHARS,
    NOTES_CHARS,
    clip,
    mark_omitted,
    serialized_size,
    shares,
    text_size,
)
from opencode_mcp.callers.watching import is_news, present_keeper
from opencode_mcp.errors import InvalidArgumentError
from opencode_mcp.lifecycle import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from opencode_mcp.callers.shown import Shown
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import Entry
    from opencode_mcp.engine.engine import Engine
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.overview import View

#: of the whole; nothing is added to a batch later
_LIMIT = MAX_RESULT_CHARS - 100
#: of all entries together; each of these is in its entry, in the entry's text and in the batch's
_ASKS_CHARS = 6_000
_WARNINGS_CHARS = 2_000
#: of one error's message
_LEAST_ERROR_CHARS = 250
#: what is left of these where even they are too much
_SCALES = (1.0, 0.5, 0.0)
#: nothing to act on: the turn goes on, or nobody knows
_PENDING = frozenset({"running", "stopping", "unknown"})

#: what is left of an entry where nothing else has room
_LEAST = (
    "kind",
    "status",
    "sessionId",
    "threadId",
    "turnId",
    "turn",
    "pendingApprovalCount",
    "structuredOutputStatus",
)
_KEPT = (*_LEAST, "pendingApprovals", "error", "elapsedMs", "truncated", "omittedFields")


@dataclass(slots=True)
class Member:
    """One session of a batch: what is known of it, and its keeper while its turn runs."""

    reference: str
    #: what it came to when it was looked at; the answer is not read from it
    result: Result
    #: None: it could not be looked at, and `result` says why
    view: View | None = None
    keeper: Keeper | None = None

    @property
    def is_ready(self) -> bool:
        """Whether there is something for the caller to act on."""
        if self.keeper is not None:
            return is_news(self.keeper)
        return self.result["status"] not in _PENDING

    @property
    def answer(self) -> str:
        """What its turn has answered so far, if that is shown."""
        if self.keeper is not None:
            return self.keeper.verdict.answer
        view = self.view
        if view is None or view.verdict is None or view.session.phase is not Phase.ACTIVE:
            return ""
        return view.verdict.answer

    def present(self, engine: Engine, shown: Shown) -> Result:
        """Return what a call for this session alone would be answered."""
        if self.keeper is not None:
            return present_keeper(engine, self.keeper, shown)
        if self.view is not None:
            return present_view(self.view, shown, now=engine.clock.now())
        return self.result


def present_batch(
    engine: Engine,
    members: Sequence[Member],
    shown: Shown,
    *,
    wait_for: Literal["any", "all"],
    is_met: bool,
) -> Result:
    """Return the result of a batch. Raises InvalidArgumentError if its ids alone are too much."""
    ready = [member.reference for member in members if member.is_ready]
    status: Literal["ready", "waiting"] = "ready" if is_met else "waiting"
    result: Result = {
        "kind": "batch",
        "status": status,
        "content": f"{status}: {len(ready)} of {len(members)} have news",
        "waitFor": wait_for,
        "reason": "condition" if is_met else "deadline",
        "results": [],
        "readyIds": ready,
        "pendingIds": [m.reference for m in members if not m.is_ready],
    }
    filled = result
    for scale in _SCALES:
        filled = _filled(result, engine, members, _scaled(shown, scale, len(members)))
        if serialized_size(filled) <= _LIMIT:
            return filled
    least = [_least(m, entry) for m, entry in zip(members, filled["results"], strict=True)]
    filled = _joined(result, members, least)
    mark_omitted(filled, "results")
    if serialized_size(filled) >= MAX_RESULT_CHARS:  # an id is never cut, and they are all ids
        msg = (
            f"these {len(members)} ids are too long to be answered together: ask for fewer at once"
        )
        raise InvalidArgumentError(msg)
    return filled


def _scaled(shown: Shown, scale: float, count: int) -> Shown:
    """Return how one of `count` entries is shown."""
    return replace(
        shown,
        asks_chars=round(_ASKS_CHARS * scale) // count,
        warnings_chars=round(_WARNINGS_CHARS * scale) // count,
        error_chars=round(max(ERROR_CHARS // count, _LEAST_ERROR_CHARS) * scale),
    )


def _filled(result: Result, engine: Engine, members: Sequence[Member], shown: Shown) -> Result:
    """Return the batch with its entries; the answers share the room that all else leaves.

    Each answer is there twice: in its entry, and in the text.
    """
    bare = replace(shown, answer_chars=0)
    entries = [_entry(member, engine, bare) for member in members]
    room = _LIMIT - NOTES_CHARS - serialized_size(_joined(result, members, entries))
    answers = [member.answer for member in members]
    needs = [text_size(answer[: shown.max_chars]) for answer in answers]
    given = shares(needs, room // 2)
    entries = [
        _entry(member, engine, replace(shown, answer_chars=chars)) if chars else entry
        for member, entry, chars in zip(members, entries, given, strict=True)
    ]
    whole = _joined(result, members, entries)
    if any(entry.get("truncated") for entry in entries):
        mark_omitted(whole, "results")
    return whole


def _entry(member: Member, engine: Engine, shown: Shown) -> Entry:
    presented = shown.without_details(member.present(engine, shown))
    kept: dict[str, Any] = {name: value for name, value in presented.items() if name in _KEPT}
    kept["content"] = presented["content"]
    if "error" in kept and member.view is None:  # nobody has cut it to this size yet
        message, _ = clip(kept["error"]["message"], shown.error_chars)
        kept["error"] = {**kept["error"], "message": message}
        kept["content"], _ = clip(kept["content"], shown.error_chars)
    return cast("Entry", kept)


def _least(member: Member, entry: Entry) -> Entry:
    """Return an entry that says no more than how its session stands, and where there is more."""
    kept: dict[str, Any] = {name: value for name, value in entry.items() if name in _LEAST}
    lost = ["content"]
    where = f"session {member.reference}: more than fits; ask for it alone with opencode-status."
    kept["content"] = where
    if "error" in entry:
        fault = entry["error"]
        kept["error"] = {"name": fault["name"], "message": "", "retryable": fault["retryable"]}
        kept["content"] = f"{fault['name']} · {where}"
        lost.append("error.message")
    return cast("Entry", {**kept, "truncated": True, "omittedFields": lost})


def _joined(result: Result, members: Sequence[Member], entries: list[Entry]) -> Result:
    """Return the result with these entries, and their texts below its own."""
    told = [
        f"{member.reference} · {entry['status']}\n{entry['content']}"
        for member, entry in zip(members, entries, strict=True)
    ]
    return {**result, "results": entries, "content": "\n\n".join([result["content"], *told])}

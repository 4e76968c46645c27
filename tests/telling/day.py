"""A day in the life of a server: every outcome of a turn, ends, approvals, an outage."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from tests.real.support.sandbox import write_project
from tests.real.support.scripts import ask_which, bash
from tests.support.polling import eventually
from tests.turns.reading import settled_end, streaming
from tests.twin import Status
from tests.worker import ASK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Answer, Bridge
    from tests.twin import Twin

#: the contents of a day: none of it belongs into a log or a metric
SECRET = "hunter2"


class Day(NamedTuple):
    """What happened."""

    #: by tool, and `ok` or the `error.name`
    calls: Counter[tuple[str, str]]
    session_ids: list[str]
    #: of submitted turns
    turn_ids: set[str]


class _Diary:
    """Makes the calls and takes down what came of them."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self.day = Day(Counter(), [], set())

    async def call(self, tool: str, **arguments: object) -> Answer:
        answer = await self._bridge.call(tool, **arguments)
        self.day.calls[tool, answer.error or "ok"] += 1
        turn_id = answer.structured.get("turnId")
        if turn_id is not None:
            self.day.turn_ids.add(str(turn_id))
        return answer

    async def start(self, prompt: str, cwd: Path, **more: object) -> str:
        answer = await self.call("opencode", prompt=prompt, cwd=str(cwd), **more)
        self.day.session_ids.append(answer.session_id)
        return answer.session_id


async def live_through(bridge: Bridge, twin: Twin, project: Path) -> Day:
    """Live through it. Nothing is tracked any more at its end."""
    diary = _Diary(bridge)
    asking = write_project(project / "asking", ASK)
    await _turns(diary, twin, project)
    await _approvals(diary, twin, asking)
    await _outage(diary, bridge, twin, project)
    await diary.call("opencode-status")
    await diary.call("opencode-status", sessionId="ses_unknown")
    await diary.call("opencode-reply", sessionId="ses_unknown", prompt=SECRET, odd=SECRET)
    return diary.day


async def _turns(diary: _Diary, twin: Twin, project: Path) -> None:
    """2 completed, 2 failed in two ways, 1 cancelled, 1 out of time; 4 deleted, 1 archived."""
    first = await diary.start(f"SAY:{SECRET}", project)
    await diary.call("opencode-reply", sessionId=first, prompt="SAY:more")
    failed = await diary.start("STATUS:400", project)
    empty = await diary.start("EMPTY", project)
    late = await diary.start("HANG", project, timeout_seconds=1)
    hanging = await diary.start("HANG", project, wait_seconds=0)
    await streaming(twin)
    await diary.call("opencode-cancel", sessionId=hanging, wait_ms=10_000)
    await diary.call("opencode-end", sessionId=first, action="archive")
    for session_id in (failed, empty, late, hanging):
        await diary.call("opencode-end", sessionId=session_id)


async def _approvals(diary: _Diary, twin: Twin, asking: Path) -> None:
    """A permission allowed, one rejected by the caller, one by policy; a question by the end.

    3 completed, 1 cancelled; 4 deleted.
    """
    script = "\n".join([bash(f"echo {SECRET}"), "THEN", "SAY:done"])
    for decision in ("allow", "reject"):
        session_id = await diary.start(script, asking, approval_policy="caller")
        approval_id = await _asked(twin, asking, "permission")
        more = {"feedback": SECRET} if decision == "reject" else {}
        named = {"approvalId": approval_id, "decision": decision}
        await diary.call("opencode-approve", sessionId=session_id, **named, **more)
        await diary.call("opencode-status", sessionId=session_id, wait_seconds=30)
        await diary.call("opencode-end", sessionId=session_id)
    never = await diary.start(script, asking)
    await diary.call("opencode-end", sessionId=never)
    questioned = await diary.start(ask_which(), asking, approval_policy="caller")
    await _asked(twin, asking, "question")
    await diary.call("opencode-end", sessionId=questioned)


async def _asked(twin: Twin, folder: Path, kind: str) -> str:
    async def check() -> list[str]:
        return [str(ask["id"]) for ask in twin.asks.of(kind, str(folder))]

    return (await eventually(check, what=f"a {kind} waits"))[0]


async def _outage(diary: _Diary, bridge: Bridge, twin: Twin, project: Path) -> None:
    """A read that fails once; then nothing can be reached, and an end is not confirmed at once.

    1 cancelled; 1 deleted.
    """
    planned = twin.fail(Status(503), method="GET", path=r"^/session/status$")
    session_id = await diary.start("HANG", project, wait_seconds=0)
    await streaming(twin)
    await diary.call("opencode-status", sessionId=session_id)
    assert len(planned.hits) == 1
    await twin.refuse()
    await diary.call("opencode-status", sessionId=session_id, wait_seconds=3)
    await diary.call("opencode-end", sessionId=session_id)
    await twin.listen()
    await settled_end(bridge, session_id)

"""How the tests stop turns, and what the twin saw of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.polling import eventually, steadily

if TYPE_CHECKING:
    from tests.support.bridge import Answer, Bridge
    from tests.twin import Twin

ENDLESS = "SLOW:100000,50"


async def cancel(bridge: Bridge, session_id: str, **more: object) -> Answer:
    return await bridge.call("opencode-cancel", sessionId=session_id, **more)


async def running(twin: Twin, session_id: str) -> None:
    """Wait until the session is busy in OpenCode's eyes."""

    async def check() -> bool:
        run = twin.runs.running.get(session_id)
        return run is not None and run.status is not None

    await eventually(check, what=f"{session_id} runs")


def aborts(twin: Twin, since: int = 0) -> int:
    return sum(line.endswith("/abort") for line in twin.lines(since))


def verdict(answer: Answer) -> tuple[Any, ...]:
    said = answer.structured
    return tuple(said[name] for name in ("status", "accepted", "done", "alreadyDone", "cancelled"))


async def eventually_quiet(twin: Twin, session_id: str) -> None:
    async def check() -> bool:
        return session_id not in twin.runs.running

    await eventually(check, what=f"{session_id} is quiet")


async def stays_quiet(twin: Twin, session_id: str) -> None:
    """Fail if the session runs, now or in the time in which a lost abort would show."""

    async def check() -> bool:
        return session_id not in twin.runs.running or twin.runs.running[session_id].status is None

    await steadily(check, for_s=1.5, what=f"{session_id} is quiet")

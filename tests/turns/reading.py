"""What the twin saw and has, as questions that the tests ask."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.polling import eventually, steadily
from tests.twin import Body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.bridge import Answer, Bridge
    from tests.twin import Planned, Twin


def submissions(twin: Twin) -> list[str]:
    """Return the prompts that were sent, each as often as it was sent."""
    return [
        str(seen.body["parts"][0]["text"])
        for seen in twin.requests
        if seen.line.endswith("/prompt_async") and seen.body
    ]


def said(twin: Twin, session_id: str) -> list[str]:
    """Return what the user said, as the twin has it."""
    return [
        message["parts"][0]["text"]
        for message in twin.world.messages(session_id)
        if message["info"]["role"] == "user"
    ]


def only_session(twin: Twin) -> str:
    """Return the id of the only session."""
    (session_id,) = twin.world.sessions
    return str(session_id)


async def streaming(twin: Twin, count: int = 1) -> None:
    """Wait until the model answers so many requests; before it, a process may have to start."""

    async def check() -> bool:
        return len(twin.model.open_streams) == count

    await eventually(check, what=f"{count} answers are streamed")


@contextmanager
def held(twin: Twin) -> Iterator[None]:
    """Keep every answer from ending meanwhile: what is done, is done in the middle of a turn."""
    twin.model.goes_on.clear()
    try:
        yield
    finally:
        twin.model.goes_on.set()


async def settled_end(bridge: Bridge, session_id: str, *, within_s: float = 15) -> Answer:
    """End a session, again and again while that is not confirmed."""
    answers: list[Answer] = []

    async def check() -> bool:
        answers.append(await bridge.end(session_id))
        return answers[-1].status != "ending"

    await eventually(check, within_s=within_s, what=f"{session_id} is ended")
    return answers[-1]


async def nothing_runs(twin: Twin, *, within_s: float = 5) -> None:
    """Fail unless nothing runs in the twin, and nothing begins to."""

    async def check() -> bool:
        return not twin.runs.running and not twin.model.open_streams

    await eventually(check, within_s=within_s, what="nothing runs")
    await steadily(check, for_s=0.3, what="nothing runs any more")


def always_busy(twin: Twin, session_id: str) -> Planned:
    """Let the status go on saying "busy" although the turn is over (case B07)."""
    said = json.dumps({session_id: {"type": "busy"}}).encode()
    return twin.fail(Body(said), path=r"^/session/status$", times=None)

"""A call that takes long is heard of all the while, whatever it waits for (contract 2.1).

Case B31. The intervals are shortened, so that the tests need not wait for seconds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.callers import progress
from tests.turns.reading import streaming
from tests.twin import Hang

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests.support.bridge import Answer, Bridge
    from tests.twin import Twin

#: the contract's promise, and the least that some clients wait
_AT_LEAST_EVERY_S = 10.0
#: what OpenCode does not answer, so that the call waits
_HELD = {
    "opencode": ("POST", r"^/session$"),
    "opencode-reply": ("GET", r"/message$"),
    "opencode-cancel": ("POST", r"/abort$"),
    "opencode-end": ("DELETE", r"^/session/"),
}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress.INTERVAL_S < progress.SILENCE_S < _AT_LEAST_EVERY_S
    monkeypatch.setattr(progress, "SILENCE_S", 0.1)


class Ear:
    """A client's progress handler."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, str]] = []
        self.thrice = asyncio.Event()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        del total
        self.heard.append((progress, message or ""))
        if len(self.heard) >= 3:
            self.thrice.set()


async def arguments_of(tool: str, bridge: Bridge, twin: Twin, project: Path) -> Json:
    """Bring about what the tool is called for; return what it is called with."""
    if tool == "opencode":
        return {"prompt": "SAY:x", "cwd": str(project)}
    if tool == "opencode-cancel":
        session_id = await bridge.begin("HANG", project)
        await streaming(twin)
        return {"sessionId": session_id, "wait-ms": 20_000}
    session_id = (await bridge.start("SAY:x", project)).session_id
    more: Json = {"prompt": "SAY:y"} if tool == "opencode-reply" else {}
    return {"sessionId": session_id} | more


@pytest.mark.parametrize("tool", _HELD)
async def test_a_call_that_waits_for_opencode_is_heard_of_until_its_answer(
    bridge: Bridge, twin: Twin, project: Path, tool: str
) -> None:
    arguments = await arguments_of(tool, bridge, twin, project)
    ear = Ear()
    method, path = _HELD[tool]
    held = twin.fail(Hang(), method=method, path=path)
    calling = asyncio.create_task(bridge.call_exactly(tool, arguments, progress=ear))
    await asyncio.wait_for(held.reached.wait(), 10)
    async with asyncio.timeout(10):
        await ear.thrice.wait()
    held.release()
    answer = await calling
    assert answer.structured["kind"] in {"turn", "end"}, answer.text
    await none_follows(bridge, answer, ear)
    values = [value for value, _ in ear.heard]
    assert values == sorted(set(values)), "progress only rises"
    assert all(0 < len(text) <= 200 for _, text in ear.heard)


async def none_follows(bridge: Bridge, answer: Answer, ear: Ear) -> None:
    """Fail if the call is heard of after its answer."""
    count = len(ear.heard)
    await bridge.status(answer.session_id)
    await asyncio.sleep(0.3)  # three times as long as a call may be silent here
    assert len(ear.heard) == count

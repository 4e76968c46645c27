"""What callers choose of their results, on the twin: `detail`, `max-output-chars`, progress."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.support.polling import eventually
from tests.turns.reading import streaming
from tests.twin import Status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    import pytest
    from fastmcp.client.elicitation import ElicitResult

    from opencode_mcp.cli.scripted_model import Json
    from tests.support.bridge import Answer, Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin

ENDLESS = "SLOW:100000,50"
QUESTION = 'TOOL:{"name":"question","args":{"questions":[{"question":"Which?","header":"Q"}]}}'
BASH = 'TOOL:{"name":"bash","args":{"command":"echo hi","description":"Say hi"}}\nTHEN\nSAY:done'


class Heard:
    """The progress texts of a call."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        self.lines.append(message or "")

    async def until(self, is_it: Callable[[str], bool], count: int = 1) -> None:
        """Wait until so many lines are what is waited for."""

        async def check() -> bool:
            return sum(map(is_it, self.lines)) >= count

        await eventually(check, what=f"{count} such lines among {self.lines}")


def _told(answer: Answer, names: Sequence[str]) -> set[str]:
    return {name for name in names if name in answer.structured}


async def test_compact_is_less_and_tells_the_same(bridge: Bridge, project: Path) -> None:
    details = ("toolCalls", "tokens", "cost", "model", "directory", "output", "elapsedMs")
    standard = await bridge.start(BASH, project)
    assert _told(standard, details) == set(details)
    session_id = standard.session_id
    answers = [
        await bridge.start(BASH, project, detail="compact"),
        await bridge.call("opencode-reply", sessionId=session_id, prompt=BASH, detail="compact"),
        await bridge.call("opencode-status", sessionId=session_id, detail="compact"),
    ]
    for answer in answers:
        assert _told(answer, details) == set()
        assert (answer.status, answer.text.split("\n")[0]) == ("completed", "done")
        assert answer.structured["toolCallCount"] == 1
        assert answer.structured["hint"] == standard.structured["hint"]
        assert answer.structured["truncated"] is False
        assert "omittedFields" not in answer.structured


async def test_compact_lists_and_batches_leave_out_times(bridge: Bridge, project: Path) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    for detail, has_times in (("standard", True), ("compact", False)):
        page = await bridge.call("opencode-status", detail=detail)
        assert ("updatedAt" in page.structured["sessions"][0]) is has_times
        assert page.structured["sessions"][0]["sessionId"] == session_id
        batch = await bridge.call("opencode-status", ids=[session_id], detail=detail)
        assert ("elapsedMs" in batch.structured["results"][0]) is has_times


async def test_a_list_tells_the_version_of_opencode_once_it_was_needed(
    bridge: Bridge, project: Path
) -> None:
    assert "opencodeVersion" not in (await bridge.call("opencode-status")).structured
    await bridge.start("SAY:x", project)
    assert (await bridge.call("opencode-status")).structured["opencodeVersion"].startswith("1.")


async def test_a_call_may_ask_for_a_shorter_or_a_longer_answer_than_the_operator_set(
    bridges: Bridges, project: Path
) -> None:
    bridge = await bridges.attached(MAX_OUTPUT_CHARS="1000")
    prompt = "SAY:" + "a" * 3_000
    usual = await bridge.start(prompt, project)
    longer = await bridge.start(prompt, project, max_output_chars=3_000)
    session_id = usual.session_id
    shorter = await bridge.call("opencode-status", sessionId=session_id, max_output_chars="200")
    several = await bridge.call("opencode-status", ids=[session_id], max_output_chars=400)
    assert 900 < usual.text.count("a" * 10) * 10 < 1_000
    assert "a" * 3_000 in longer.text
    assert 100 < shorter.text.count("a" * 10) * 10 < 200
    assert 300 < several.structured["results"][0]["content"].count("a" * 10) * 10 < 400
    for cut in (usual, shorter):
        assert (cut.structured["truncated"], cut.structured["omittedFields"]) == (True, ["content"])
        assert cut.structured["output"]["answerChars"] == 3_000
    assert longer.structured["truncated"] is False
    assert several.structured["omittedFields"] == ["results"]


async def test_progress_comes_however_much_happens_meanwhile(
    bridge: Bridge, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contract 2.1: an outage announces itself again and again, and must not keep progress away."""
    monkeypatch.setattr("opencode_mcp.callers.progress.INTERVAL_S", 0.3)
    monkeypatch.setattr("opencode_mcp.engine.keeper.TROUBLE_PAUSE_S", 0.05)
    session_id = await bridge.begin(ENDLESS, project)
    await streaming(twin)
    heard = Heard()
    arguments = {"sessionId": session_id, "wait-seconds": 60}
    async with _calling(bridge, arguments, heard):
        await heard.until(lambda line: "writing its answer" in line)
        # refused, not tried again: each try is announced at once
        failing = twin.fail(Status(401), path=r"^/session/status$", times=None)
        twin.drop_streams()
        await heard.until(lambda line: line.startswith("OpenCode cannot be asked"), count=3)
        failing.release()


async def test_a_batch_tells_what_each_of_its_turns_does(
    bridge: Bridge, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opencode_mcp.callers.progress.INTERVAL_S", 0.1)
    ids = [await bridge.begin(ENDLESS, project, title=f"job {n}") for n in range(2)]
    await streaming(twin, count=2)
    heard = Heard()
    begin = "0 of 2 have news; job 0: writing its answer ("
    async with _calling(bridge, {"ids": ids, "wait-seconds": 60}, heard):
        await heard.until(lambda line: line.startswith(begin) and "; job 1: writing" in line)
    assert all(len(line) <= 200 for line in heard.lines)


async def test_a_call_tells_at_once_what_it_watches(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = await bridge.begin(ENDLESS, project)
    await streaming(twin)
    one, several = Heard(), Heard()
    async with _calling(bridge, {"sessionId": session_id, "wait-seconds": 60}, one):
        await one.until(lambda line: line == f"turn 1 of {session_id} is running")
    async with _calling(bridge, {"ids": [session_id], "wait-seconds": 60}, several):
        await several.until(lambda line: line.startswith("0 of 1 have news; "))


async def test_a_person_who_is_waited_for_is_told_of(
    bridges: Bridges, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opencode_mcp.callers.progress.INTERVAL_S", 0.1)
    asked = asyncio.Event()

    async def never_answers(*_: object) -> ElicitResult[Any]:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    bridge = await bridges.attached(person=never_answers)
    heard = Heard()
    arguments = {"prompt": QUESTION, "cwd": str(project), "approval-policy": "on-request"}
    async with _calling(bridge, {**arguments, "wait-seconds": 60}, heard, tool="opencode"):
        await heard.until(lambda line: line == "waiting for a person: an answer: Which?", count=2)
    assert asked.is_set()


@asynccontextmanager
async def _calling(
    bridge: Bridge, arguments: Json, heard: Heard, tool: str = "opencode-status"
) -> AsyncIterator[None]:
    """Call a tool while the block runs, and cancel that call at its end."""
    call = asyncio.create_task(bridge.call_exactly(tool, arguments, progress=heard))
    try:
        yield
        assert not call.done()
    finally:
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

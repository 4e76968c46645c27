"""Some clients show a model only the text of an answer, others only its structured half.

Cases B25 and B27. That the two say the same is checked of every answer in these tests (`Bridge`);
here, that what they say is enough to go on with: which session, where it stands, what comes next.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.turns.reading import streaming
from tests.twin import Status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.support.bridge import Answer, Bridge
    from tests.twin import Twin

    Situation = Callable[[Bridge, Twin, Path], Awaitable[Answer]]

ASKING = 'TOOL:{"name":"bash","args":{"command":"echo hi","description":"say"}}'


async def completed(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    del twin
    return await bridge.start("SAY:x", folder)


async def running(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    del twin
    return await bridge.start("HANG", folder, wait_seconds=0)


async def waiting_for_approval(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    del twin
    return await bridge.start(ASKING, folder, approval_policy="caller", wait_seconds=20)


async def failed(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    del twin
    return await bridge.start("EMPTY", folder)


async def timeout(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    del twin
    return await bridge.start("HANG", folder, timeout_seconds=1)


async def unknown_model(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    """Case B11: named, also to a call that does not wait, with some that there are."""
    answer = await bridge.call(
        "opencode", prompt="SAY:x", cwd=str(folder), model="nosuch/none", wait_seconds=0
    )
    assert "nosuch/none" in answer.text
    assert "scripted/" in answer.text
    assert not twin.world.sessions
    return answer


async def busy(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    session_id = await bridge.begin("HANG", folder)
    await streaming(twin)
    return await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:y")


async def unknown_session(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    del twin, folder
    return await bridge.call("opencode-reply", sessionId="ses_of_before", prompt="SAY:y")


async def a_look(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    return await bridge.status((await completed(bridge, twin, folder)).session_id)


async def a_list(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    await completed(bridge, twin, folder)
    return await bridge.call("opencode-status", limit=1)


async def a_batch(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    ids = [(await completed(bridge, twin, folder)).session_id, await bridge.begin("HANG", folder)]
    return await bridge.call("opencode-status", ids=ids, wait_for="all")


async def cancelled(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    session_id = await bridge.begin("HANG", folder)
    await streaming(twin)
    return await bridge.call("opencode-cancel", sessionId=session_id, wait_ms=10_000)


async def already_done(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    session_id = (await completed(bridge, twin, folder)).session_id
    return await bridge.call("opencode-cancel", sessionId=session_id)


async def stopping(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    session_id = await bridge.begin("HANG", folder)
    await streaming(twin)
    twin.fail(Status(503), path=r"^/session/status$|/message", times=None)
    return await bridge.call("opencode-cancel", sessionId=session_id, wait_ms=0)


async def approved(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    told = await waiting_for_approval(bridge, twin, folder)
    return await bridge.call(
        "opencode-approve",
        sessionId=told.session_id,
        approvalId=told.structured["pendingApprovals"][0]["id"],
        decision="allow",
    )


async def nothing_to_approve(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    """Case 24: an id that is not pending is never granted."""
    told = await waiting_for_approval(bridge, twin, folder)
    since = len(twin.requests)
    answer = await bridge.call(
        "opencode-approve",
        sessionId=told.session_id,
        approvalId="per_of_before",
        decision="allow",
    )
    assert not [line for line in twin.lines(since) if line.endswith("/reply")]
    return answer


async def deleted(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    return await bridge.end((await completed(bridge, twin, folder)).session_id)


async def archived(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    """Case 29: kept, under which id, readable, and for good."""
    session_id = (await completed(bridge, twin, folder)).session_id
    answer = await bridge.end(session_id, action="archive")
    for word in ("keeps", "readable", "no way to un-archive", session_id):
        assert word in answer.text
    return answer


async def ended_before(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    return await bridge.end((await deleted(bridge, twin, folder)).session_id)


async def ending(bridge: Bridge, twin: Twin, folder: Path) -> Answer:
    session_id = (await completed(bridge, twin, folder)).session_id
    twin.fail(Status(503), method="DELETE", times=None)
    return await bridge.end(session_id)


SITUATIONS: list[Situation] = [
    *(completed, running, waiting_for_approval, failed, timeout, unknown_model),
    *(busy, unknown_session, a_look, a_list, a_batch),
    *(cancelled, already_done, stopping, approved, nothing_to_approve),
    *(deleted, archived, ended_before, ending),
]


@pytest.fixture
def asking(project: Path) -> Path:
    """Give a folder in which a command needs leave."""
    rules = '{"permission": {"bash": "ask"}}'
    (project / "opencode.json").write_text(rules, encoding="utf-8")
    return project


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda it: it.__name__)
async def test_the_text_alone_says_which_session_where_it_stands_and_what_comes_next(
    bridge: Bridge, twin: Twin, asking: Path, situation: Situation
) -> None:
    answer = await situation(bridge, twin, asking)
    said = answer.structured
    for one in [said, *said.get("sessions", []), *said.get("results", [])]:
        if "sessionId" in one:
            assert one["sessionId"] in answer.text
        if one.get("kind") not in {"sessions", "error"}:
            assert re.search(rf"\b{one['status']}\b", answer.text), one["status"]
        if "error" in one:
            assert one["error"]["name"] in answer.text
            assert one["error"]["message"] in answer.text
        for key in ("hint", "nextAction"):
            if key in one:
                assert one[key] in answer.text
    if said["kind"] in {"turn", "batch", "error"} and answer.error != "INVALID_ARGUMENT":
        assert names_a_tool(answer.text), "what comes next"


def names_a_tool(text: str) -> bool:
    """Whether a text names a call that can follow."""
    return bool(re.search(r"\bopencode-(reply|status|cancel|approve|end)\b", text))

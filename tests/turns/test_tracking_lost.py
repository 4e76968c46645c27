"""The tracking database is lost, or its disk is full, while the server runs.

Contract, errors: `TRACKING_UNAVAILABLE`; what cannot be written down first is not sent.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.disk import Disk
from tests.support.polling import eventually
from tests.turns.reading import held, streaming, submissions
from tests.twin import Hang

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.bridge import Answer, Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin


def move_away(database: Path) -> None:
    database.rename(f"{database}.away")


def replace(database: Path) -> None:
    """As a restore from a backup does."""
    copy = database.with_name("copy.db")
    copy.write_bytes(database.read_bytes())
    copy.replace(database)


def empty(database: Path) -> None:
    database.write_bytes(b"")


LOSSES = pytest.mark.parametrize("lose", [move_away, replace, empty], ids=lambda it: it.__name__)

#: an ask that waits for its caller
ASKING = 'TOOL:{"name":"bash","args":{"command":"echo x","description":"say"}}'


@pytest.fixture
def asking(project: Path) -> Path:
    """Give the folder rules that ask before a command."""
    rules = '{"permission": {"bash": "ask"}}'
    (project / "opencode.json").write_text(rules, encoding="utf-8")
    return project


@pytest.fixture
def disk() -> Iterator[Disk]:
    """Give a disk that can be filled."""
    with Disk() as made:
        yield made


def changes(twin: Twin, since: int) -> list[str]:
    """Return what was sent after the first `since` requests, reads left out."""
    return [line for line in twin.lines(since) if not line.startswith("GET ")]


def refused(answer: Answer) -> bool:
    return (answer.is_error, answer.error) == (True, "TRACKING_UNAVAILABLE")


async def every_tool(bridge: Bridge, session_id: str, project: Path) -> dict[str, Answer]:
    """Call all tools about the session."""
    calls: dict[str, dict[str, Any]] = {
        "opencode": {"prompt": "SAY:new", "cwd": str(project)},
        "opencode-reply": {"prompt": "SAY:more", "sessionId": session_id},
        "opencode-status": {"sessionId": session_id},
        "opencode-cancel": {"sessionId": session_id},
        "opencode-approve": {"sessionId": session_id, "approvalId": "per_1", "decision": "allow"},
        "opencode-output": {"sessionId": session_id, "turn": 1},
        "opencode-end": {"sessionId": session_id},
    }
    return {tool: await bridge.call(tool, **arguments) for tool, arguments in calls.items()}


@LOSSES
async def test_no_tool_goes_on_without_its_database(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path, lose: Callable[[Path], None]
) -> None:
    """A deleted file takes writes as before, and nobody will ever read them."""
    session = await bridge.start("SAY:x", project)
    lose(bridges.database)
    since = len(twin.requests)
    answers = await every_tool(bridge, session.session_id, project)
    listed = await bridge.call("opencode-status")

    for tool, answer in {**answers, "list": listed}.items():
        assert refused(answer), tool
        assert str(bridges.database) in answer.text
    assert answers["opencode"].structured["resendSafety"] == "not_submitted"
    assert answers["opencode-reply"].structured["resendSafety"] == "not_submitted"
    assert changes(twin, since) == []


async def test_a_database_that_is_put_back_is_used_again(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    session = await bridge.start("SAY:x", project)
    move_away(bridges.database)
    lost = await bridge.status(session.session_id)
    bridges.database.with_name(f"{bridges.database.name}.away").rename(bridges.database)
    ended = await bridge.end(session.session_id)

    assert refused(lost)
    assert ended.status == "ended"
    assert twin.world.sessions == {}


async def test_a_database_whose_mode_is_taken_away_still_takes_what_is_written(
    bridge: Bridge, bridges: Bridges, project: Path
) -> None:
    """It is open, so nothing is lost: a working server."""
    session = await bridge.start("SAY:x", project)
    bridges.database.chmod(0)
    more = await bridge.call("opencode-reply", prompt="SAY:y", sessionId=session.session_id)
    bridges.database.chmod(0o600)
    await bridge.close()
    listed = await (await bridges.attached()).call("opencode-status")

    assert more.status == "completed"
    assert [entry["turns"] for entry in listed.structured["sessions"]] == [2]


@pytest.mark.parametrize("tool", ["opencode", "opencode-reply", "opencode-cancel"])
async def test_a_call_that_loses_its_database_sends_nothing_more(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path, tool: str
) -> None:
    """It is lost while the call reads from OpenCode what it has to know first."""
    arguments: dict[str, Any]
    if tool == "opencode":
        arguments = {"prompt": "SAY:new", "cwd": str(project)}
    else:
        prompt = "HANG" if tool == "opencode-cancel" else "SAY:x"
        session_id = await bridge.begin(prompt, project)
        arguments = {"sessionId": session_id}
        if tool == "opencode-reply":
            await bridge.settled(session_id)
            arguments["prompt"] = "SAY:more"
        else:
            await streaming(twin)
    before = submissions(twin)
    since = len(twin.requests)
    hung = twin.fail(Hang(), method="GET", times=None)
    call = asyncio.create_task(bridge.call(tool, **arguments))
    await hung.reached.wait()
    move_away(bridges.database)
    hung.release()
    answer = await call

    assert refused(answer)
    assert changes(twin, since) == []
    assert submissions(twin) == before


async def test_a_start_that_loses_its_database_after_the_create_sends_no_prompt(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    hung = twin.fail(Hang(), method="POST", path=r"^/session$")
    call = asyncio.create_task(bridge.call("opencode", prompt="SAY:x", cwd=str(project)))
    await hung.reached.wait()
    move_away(bridges.database)
    hung.release()
    answer = await call

    assert refused(answer)
    assert answer.structured["resendSafety"] == "not_submitted"
    assert submissions(twin) == []


async def test_an_end_that_loses_its_database_deletes_nothing(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    session_id = await bridge.begin("HANG", project)
    await streaming(twin)
    hung = twin.fail(Hang(), method="POST", path=r"/abort$")
    call = asyncio.create_task(bridge.end(session_id))
    await hung.reached.wait()
    move_away(bridges.database)
    hung.release()
    answer = await call

    assert refused(answer)
    assert session_id in twin.world.sessions
    assert not [line for line in twin.lines() if line.startswith("DELETE")]


async def test_an_approval_that_loses_its_database_grants_nothing(
    bridge: Bridge, bridges: Bridges, twin: Twin, asking: Path
) -> None:
    waiting = await bridge.start(ASKING, asking, approval_policy="caller")
    (ask,) = waiting.structured["pendingApprovals"]
    since = len(twin.requests)
    hung = twin.fail(Hang(), method="GET", times=None)
    call = asyncio.create_task(
        bridge.call(
            "opencode-approve",
            sessionId=waiting.session_id,
            approvalId=ask["id"],
            decision="allow",
        )
    )
    await hung.reached.wait()
    move_away(bridges.database)
    hung.release()
    answer = await call

    assert waiting.status == "waiting_for_approval"
    assert refused(answer)
    assert changes(twin, since) == []


async def test_a_full_disk_stops_every_change_and_none_of_what_runs(
    disk: Disk, bridges: Bridges, twin: Twin, project: Path
) -> None:
    """Reads work on; what cannot be written down is not sent; with space all goes on."""
    bridge = await bridges.attached(REQUEST_TIMEOUT_SECONDS="5")
    idle = await bridge.start("SAY:x", project)
    running = await bridge.begin("HANG", project)
    await streaming(twin)
    since, disk.room = len(twin.requests), 0
    full = {
        "opencode": await bridge.call("opencode", prompt="SAY:y", cwd=str(project)),
        "opencode-reply": await bridge.call(
            "opencode-reply", prompt="SAY:y", sessionId=idle.session_id
        ),
        "opencode-cancel": await bridge.call("opencode-cancel", sessionId=running),
        "opencode-end": await bridge.end(running),
    }
    sent = changes(twin, since)
    status = await bridge.status(running)
    disk.room = None
    more = await bridge.call("opencode-reply", prompt="SAY:y", sessionId=idle.session_id)
    ends = [await bridge.end(one) for one in (idle.session_id, running)]

    for tool, answer in full.items():
        assert refused(answer), tool
        assert "free space" in answer.text
    assert sent == []
    assert status.status == "running"
    assert more.status == "completed"
    assert [end.status for end in ends] == ["ended", "ended"]
    assert twin.world.sessions == {}


async def test_a_turn_that_ends_while_the_disk_is_full_is_crossed_out_later(
    disk: Disk, bridges: Bridges, twin: Twin, project: Path
) -> None:
    bridge = await bridges.attached(MAX_RUNNING_TURNS="1")
    with held(twin):
        session_id = await bridge.begin("SAY:told", project)
        await streaming(twin)
        disk.room = 0
    settled = await bridge.settled(session_id)
    disk.room = None

    async def is_counted_no_more() -> bool:
        answer = await bridge.call("opencode", prompt="SAY:next", cwd=str(project))
        return answer.status == "completed"

    assert settled.status == "completed"
    await eventually(is_counted_no_more, within_s=20, what="the turn counts as over")

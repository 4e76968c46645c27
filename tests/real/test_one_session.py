"""One session from start to end: each prompt reaches the model, and is answered by itself."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING, Literal

import pytest

from tests.real.support.model_requests import turns_of
from tests.real.support.sandbox import write_project
from tests.real.support.scripts import ENDLESS, bash, write

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import ScriptedModel
    from tests.real.support.bridges import RealBridges
    from tests.real.support.witness import Witness
    from tests.support.bridge import Bridge


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_task_is_started_answered_continued_listed_and_ended(
    bridges: RealBridges, witness: Witness, project: Path, era: Literal["legacy", "auto"]
) -> None:
    """The main job, with a client that shakes hands and with one that does not."""
    bridge = await bridges.attached_process(mode=era)
    first = await bridge.start("SAY:It is done.", project, title="My task")
    session_id = first.session_id
    second = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:Once more.")
    status = await bridge.status(session_id)
    listed = await bridge.listed()
    existed = await witness.session(session_id)
    said = await witness.user_texts(session_id)
    ended = await bridge.end(session_id)

    assert (first.status, first.is_error) == ("completed", False)
    assert "It is done." in first.text
    assert first.structured["turn"] == 1
    assert first.structured["directory"] == str(project)
    assert (second.status, second.structured["turn"]) == ("completed", 2)
    assert "Once more." in second.text
    assert "It is done." not in second.text
    assert status.status == "completed"
    assert set(listed) == {session_id}
    assert listed[session_id] in {"completed", "idle"}
    assert existed is not None
    assert (existed["directory"], existed["title"]) == (str(project), "My task")
    assert said == ["SAY:It is done.", "SAY:Once more."]
    assert (ended.status, ended.structured["action"]) == ("ended", "delete")
    await witness.ended(session_id, project)
    assert await bridge.listed() == {}


async def test_each_reply_reaches_the_model_and_is_answered_by_itself(
    bridge: Bridge, witness: Witness, model: ScriptedModel, project: Path
) -> None:
    """Case B19: a follow-up prompt is not lost, and no older answer is given for it."""
    started = await bridge.start("remember ALPHA", project)
    session_id = started.session_id
    beta = await bridge.call("opencode-reply", sessionId=session_id, prompt="now say BETA")
    gamma = await bridge.call("opencode-reply", sessionId=session_id, prompt="now say GAMMA")

    assert "You said: now say BETA" in beta.text
    assert "You said: now say GAMMA" in gamma.text
    assert "BETA" not in gamma.structured["content"].replace(session_id, "")
    assert len(await witness.user_texts(session_id)) == 3
    last = turns_of(model, session_id)[-1]
    assert last.prompt == "now say GAMMA"
    assert "remember ALPHA" in str(last.body["messages"])


async def test_a_start_without_waiting_returns_at_once_and_goes_on(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    """Case B17: nothing in that path waits for the model."""
    began = time.monotonic()
    started = await bridge.start("SLOW:60\nSAY:slow answer", project, wait_seconds=0)
    took_s = time.monotonic() - began
    await witness.streaming(started.session_id)
    meanwhile = await bridge.status(started.session_id)
    settled = await bridge.settled(started.session_id)

    assert (started.status, started.is_error) == ("running", False)
    assert took_s < 5, "the model needs six seconds"
    assert meanwhile.status == "running"
    assert meanwhile.structured["executionState"] == "active"
    assert settled.status == "completed"
    assert "w59" in settled.text


async def test_a_wait_that_runs_out_gives_a_snapshot_and_names_the_next_call(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    answer = await bridge.start(ENDLESS, project, wait_seconds=1)

    assert (answer.status, answer.is_error) == ("running", False)
    assert "opencode-status" in answer.text
    await witness.streaming(answer.session_id)  # the turn goes on
    await bridge.end(answer.session_id)


async def test_options_reach_opencode_and_last_for_the_session(
    bridge: Bridge, witness: Witness, model: ScriptedModel, project: Path
) -> None:
    started = await bridge.call_exactly(
        "opencode",
        {
            "prompt": "SAY:one",
            "cwd": str(project),
            "model": "scripted/two",
            "agent": "plan",
            "title": "Titled",
            "base-instructions": "BASE-RULES",
            "developer-instructions": "DEVELOPER-RULES",
        },
    )
    session_id = started.session_id
    await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:two")
    changed = await bridge.call_exactly(
        "opencode-reply",
        {
            "sessionId": session_id,
            "prompt": "SAY:three",
            "model": "scripted/one",
            "agent": "build",
            "developer-instructions": "OTHER-RULES",
        },
    )

    first, second, third = turns_of(model, session_id)
    assert [request.model for request in (first, second, third)] == ["two", "two", "one"]
    for request in (first, second):
        system = str(request.body["messages"][0])
        assert "BASE-RULES" in system
        assert "DEVELOPER-RULES" in system
    assert "OTHER-RULES" in str(third.body["messages"][0])
    assert "DEVELOPER-RULES" not in str(third.body["messages"][0])
    assert (started.structured["model"], started.structured["agent"]) == ("scripted/two", "plan")
    assert (changed.structured["model"], changed.structured["agent"]) == ("scripted/one", "build")
    assert (await witness.session(session_id) or {})["title"] == "Titled"


async def test_what_the_turn_did_is_told(bridge: Bridge, project: Path) -> None:
    target = project / "new.txt"
    answer = await bridge.start(
        f"{bash('echo hi')}\n{write(target, 'made')}\nTHEN\nSAY:Both are done.", project
    )

    assert answer.status == "completed"
    assert "Both are done." in answer.text
    assert target.read_text(encoding="utf-8") == "made"
    assert sorted(call["tool"] for call in answer.structured["toolCalls"]) == ["bash", "write"]
    assert {call["status"] for call in answer.structured["toolCalls"]} == {"completed"}


async def test_a_second_prompt_to_a_running_turn_is_refused(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    session_id = await bridge.begin(ENDLESS, project)
    await witness.streaming(session_id)
    answer = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:no")

    assert answer.error == "SESSION_BUSY"
    assert await witness.user_texts(session_id) == [ENDLESS]
    await bridge.end(session_id)


async def test_two_replies_at_once_become_one_turn(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    started = await bridge.start("SAY:ready", project)
    session_id = started.session_id
    answers = await asyncio.gather(
        *(
            bridge.call("opencode-reply", sessionId=session_id, prompt=f"SLOW:20\nSAY:{name}")
            for name in ("left", "right")
        )
    )

    assert sorted(answer.error or "fine" for answer in answers) == ["SESSION_BUSY", "fine"]
    assert len(await witness.user_texts(session_id)) == 2


async def test_sessions_in_several_folders_are_each_asked_in_their_own(
    bridge: Bridge, witness: Witness, tmp_path: Path
) -> None:
    """Case B09: OpenCode's status is per directory (facts 1.7)."""
    folders = [write_project(tmp_path / name) for name in ("a", "b")]
    sessions = [await bridge.begin(ENDLESS, folder) for folder in folders]
    for session_id in sessions:
        await witness.streaming(session_id)
    running = await bridge.listed()
    looks = [(await bridge.status(session_id)).status for session_id in sessions]
    await witness.abort(sessions[0])
    await bridge.settled(sessions[0])
    later = await bridge.listed()
    for session_id, folder in zip(sessions, folders, strict=True):
        assert (await bridge.end(session_id)).status == "ended"
        await witness.ended(session_id, folder)

    assert [running[session_id] for session_id in sessions] == ["running", "running"]
    assert looks == ["running", "running"]
    assert later[sessions[0]] != "running"
    assert later[sessions[1]] == "running"


async def test_a_reader_of_either_half_finds_the_answer_the_id_and_the_state(
    bridge: Bridge, project: Path
) -> None:
    """Cases B25 and B27: some clients show only the text, others only the structured half."""
    first = await bridge.start('SAY:He said "yes",\nSAY:\tthen left.\nSAY:The end.', project)
    found = re.search(r"ses_\w+", first.text)
    assert found is not None
    by_text = await bridge.call("opencode-reply", threadId=found[0], prompt="SAY:by text")
    by_data = await bridge.call(
        "opencode-reply", conversationId=first.structured["threadId"], prompt="SAY:by data"
    )

    for half in (first.text, first.structured["content"]):
        assert 'He said "yes",' in half
        assert "The end." in half
    assert "completed" in first.text
    assert by_text.session_id == by_data.session_id == first.session_id
    assert by_data.structured["turn"] == 3


async def test_a_list_is_paged(bridges: RealBridges, project: Path) -> None:
    bridge = await bridges.attached()
    sessions = [(await bridge.start(f"SAY:{n}", project)).session_id for n in range(3)]
    first = await bridge.call("opencode-status", limit=2)
    rest = await bridge.call("opencode-status", limit=2, offset=first.structured["nextOffset"])

    assert (first.structured["total"], first.structured["hasMore"]) == (3, True)
    assert rest.structured["hasMore"] is False
    pages = [entry for page in (first, rest) for entry in page.structured["sessions"]]
    assert [entry["sessionId"] for entry in pages] == list(reversed(sessions))


async def test_a_long_wait_reports_progress(bridge: Bridge, project: Path) -> None:
    """Contract §2.1: at least every 10 s, and none after the answer."""
    heard: list[float] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        del total
        heard.append(progress)
        assert message is not None
        assert len(message) <= 200

    await bridge.call_exactly(
        "opencode",
        {"prompt": "SLOW:115", "cwd": str(project), "wait-seconds": 30},
        progress=listen,
    )

    assert heard
    assert heard == sorted(set(heard)), "progress only rises"

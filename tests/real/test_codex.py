"""A Codex caller's whole story on the real OpenCode: only the command has changed for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.support.person import Person
from tests.real.support.scripts import bash

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.bridges import RealBridges
    from tests.real.support.witness import Witness
    from tests.support.bridge import Era

_HELLO = bash("echo hello")


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_thread_is_started_answered_after_a_restart_of_ours_and_ended_by_its_id(
    bridges: RealBridges, witness: Witness, project: Path, era: Era
) -> None:
    cwd = str(project)
    bridge = await bridges.attached_process(mode=era, CODEX_TOOLS="true", DEFAULT_CWD=cwd)
    first = await bridge.call("codex", prompt="SAY:It is done.", sandbox="read-only", cwd=".")
    assert await bridge.client.list_resources() == []
    assert await bridge.client.list_prompts() == []
    await bridge.close()

    later = await bridges.attached_process(mode=era, CODEX_TOOLS="true", DEFAULT_CWD=cwd)
    thread_id = first.thread_id
    second = await later.call("codex-reply", threadId=thread_id, prompt="SAY:Once more.")
    said = await witness.user_texts(thread_id)
    ended = await later.call("opencode-end", threadId=thread_id)
    gone = await later.call("codex-reply", conversationId=thread_id, prompt="SAY:Again.")

    assert first.structured == {"threadId": thread_id, "content": "It is done."}
    assert second.structured == {"threadId": thread_id, "content": "Once more."}
    assert (first.is_error, second.is_error) == (False, False)
    assert thread_id in first.text
    assert said == ["SAY:It is done.", "SAY:Once more."]
    assert ended.status == "ended"
    await witness.ended(thread_id, project)
    assert (gone.is_error, gone.thread_id) == (True, thread_id)
    assert "SESSION_NOT_FOUND" in gone.text


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_person_is_asked_and_without_one_nothing_hangs(
    bridges: RealBridges, witness: Witness, asking: Path, era: Era
) -> None:
    person = Person("accept", {"allow": True})
    bridge = await bridges.attached(mode=era, person=person, CODEX_TOOLS="true")
    script = f"{_HELLO}\nTHEN\nSAY:finished"
    more = {"cwd": str(asking), "approval_policy": "on-request"}
    allowed = await bridge.call("codex", prompt=script, **more)
    alone = await bridges.attached(mode=era, CODEX_TOOLS="true")
    rejected = await alone.call("codex-reply", threadId=allowed.thread_id, prompt=script)

    assert (allowed.is_error, allowed.content) == (False, "finished"), allowed.text
    assert len(person.messages) == 1
    assert (rejected.is_error, rejected.content.startswith("finished")) == (False, True)
    assert "cannot ask a person" in rejected.content
    assert not await witness.permissions(asking)


async def test_a_bare_model_name_finds_its_provider(
    bridges: RealBridges, witness: Witness, project: Path
) -> None:
    bridge = await bridges.attached(CODEX_TOOLS="true", DEFAULT_CWD=str(project))
    answer = await bridge.call("codex", prompt="SAY:x", model="two")
    refused = await bridge.call("codex", prompt="SAY:x", model="gpt-5.2-codex")

    assert (answer.is_error, answer.content) == (False, "x")
    request = witness.model.last_request
    assert request is not None
    assert request.model == "two"
    assert refused.is_error
    assert "is not offered by OpenCode" in refused.content

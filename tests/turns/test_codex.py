"""`codex` and `codex-reply` on the twin: a Codex caller's day, and what Codex got wrong."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from fastmcp.client.elicitation import ElicitResult

from opencode_mcp.callers.eliciting import ASKED_TOO_OFTEN
from tests.turns.asks import QUESTION
from tests.turns.reading import only_session, said, submissions
from tests.turns.threads import reply
from tests.twin import Body

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests.support.bridge import Bridge, Era
    from tests.support.bridges import Bridges
    from tests.twin import Twin

ERAS = ("legacy", "auto")
ASKING = 'TOOL:{"name":"bash","args":{"command":"echo hello","description":"hello"}}'


@pytest.fixture
def asking(project: Path) -> Path:
    """Give a project in which the shell needs leave."""
    rules = {"permission": {"bash": "ask"}}
    (project / "opencode.json").write_text(json.dumps(rules), encoding="utf-8")
    return project


# --- a day


async def test_a_turn_is_answered_with_its_thread_and_the_answer_as_it_is(
    codex: Bridge, twin: Twin, project: Path
) -> None:
    answer = await codex.call("codex", prompt='SAY:{"a": 1}')
    assert answer.structured == {"threadId": only_session(twin), "content": '{"a": 1}'}
    assert answer.text == f'{{"a": 1}}\n\n[threadId {answer.thread_id}]'
    assert not answer.is_error
    assert twin.world.sessions[answer.thread_id]["directory"] == str(project)


async def test_it_waits_until_the_turn_is_over_whatever_the_usual_wait_is(
    bridges: Bridges, project: Path
) -> None:
    codex = await bridges.attached(CODEX_TOOLS="true", DEFAULT_WAIT_SECONDS="0")
    first = await codex.call("codex", prompt="SLOW:20,20", cwd=str(project))
    second = await reply(codex, first.thread_id, "SLOW:30,20")
    assert (first.content.split()[-1], second.content.split()[-1]) == ("w19", "w29")
    assert not first.is_error
    assert not second.is_error


@pytest.mark.parametrize("name", ["threadId", "conversationId"])
async def test_a_thread_goes_on_also_after_a_restart_of_ours(
    bridges: Bridges, codex: Bridge, twin: Twin, name: str
) -> None:
    """Codex forgot its threads with its process."""
    thread_id = (await codex.call("codex", prompt="SAY:one")).thread_id
    await codex.close()
    later = await bridges.attached(CODEX_TOOLS="true")
    answer = await later.call_exactly("codex-reply", {name: thread_id, "prompt": "SAY:two"})
    assert answer.structured == {"threadId": thread_id, "content": "two"}
    assert said(twin, thread_id) == ["SAY:one", "SAY:two"]


async def test_an_old_thread_id_that_an_operator_made_an_alias_still_works(
    bridges: Bridges, codex: Bridge
) -> None:
    """Contract §1: callers that still hold ids of Codex itself."""
    thread_id = (await codex.call("codex", prompt="SAY:one")).thread_id
    old = "019bbed6-1e9e-7f31-984c-a05b65045719"
    await codex.close()
    with closing(sqlite3.connect(bridges.database)) as file, file:
        file.execute("INSERT INTO aliases (alias, session_id) VALUES (?, ?)", [old, thread_id])
    later = await bridges.attached(CODEX_TOOLS="true")
    answer = await reply(later, old, "SAY:two")
    assert answer.structured == {"threadId": thread_id, "content": "two"}


async def test_a_thread_is_a_session_to_all_other_tools(codex: Bridge) -> None:
    """Codex had no way to end one."""
    thread_id = (await codex.call("codex", prompt="SAY:one")).thread_id
    status = await codex.call("opencode-status", threadId=thread_id)
    on = await codex.call("opencode-reply", threadId=thread_id, prompt="SAY:two")
    back = await reply(codex, thread_id, "SAY:three")
    ended = await codex.call("opencode-end", threadId=thread_id)
    gone = await reply(codex, thread_id, "SAY:four")
    assert (status.status, on.structured["turn"], back.content) == ("completed", 2, "three")
    assert ended.status == "ended"
    assert (gone.is_error, gone.thread_id) == (True, thread_id)
    assert "SESSION_NOT_FOUND" in gone.text
    assert "ended at" in gone.text


async def test_what_was_asked_for_reaches_opencode(
    codex: Bridge, twin: Twin, project: Path
) -> None:
    (project / "sub").mkdir()
    answer = await codex.call(
        "codex",
        prompt="SAY:x",
        cwd="sub",
        model="scripted/two",
        sandbox="read-only",
        base_instructions="be brief",
        developer_instructions="use tabs",
    )
    assert not answer.is_error
    session = twin.world.sessions[answer.thread_id]
    assert session["directory"] == str(project / "sub")
    denied = {rule["permission"] for rule in session["permission"] if rule["action"] == "deny"}
    assert {"edit", "bash"} <= denied
    (sent,) = [seen.body for seen in twin.requests if seen.line.endswith("/prompt_async")]
    assert sent is not None
    assert sent["model"] == {"providerID": "scripted", "modelID": "two"}
    assert "be brief" in sent["system"]
    assert "use tabs" in sent["system"]


async def test_a_folder_outside_is_refused_also_when_it_is_relative(
    codex: Bridge, twin: Twin
) -> None:
    answer = await codex.call("codex", prompt="SAY:x", cwd="../..")
    assert "PATH_NOT_ALLOWED" in answer.content
    assert (answer.is_error, answer.thread_id) == (True, "")
    assert submissions(twin) == []


# --- models


async def test_a_bare_model_name_means_the_one_that_is_offered(codex: Bridge, twin: Twin) -> None:
    """Codex took bare names: a caller's configuration need not change."""
    answer = await codex.call("codex", prompt="SAY:x", model="two")
    assert not answer.is_error
    (sent,) = [seen.body for seen in twin.requests if seen.line.endswith("/prompt_async")]
    assert sent is not None
    assert sent["model"] == {"providerID": "scripted", "modelID": "two"}


async def test_the_operators_default_model_decides_where_a_bare_name_is_offered_twice(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    models = {name: {"id": name} for name in ("one", "two")}
    offered = {"providers": [{"id": who, "models": models} for who in ("other", "scripted")]}
    twin.fail(Body(json.dumps(offered).encode()), path=r"^/config/providers$", times=None)
    codex = await bridges.attached(CODEX_TOOLS="true", DEFAULT_MODEL="scripted/one")
    for more in ({"model": "two"}, {}):
        answer = await codex.call("codex", prompt="SAY:x", cwd=str(project), **more)
        assert not answer.is_error
    sent = [seen.body for seen in twin.requests if seen.line.endswith("/prompt_async")]
    assert [body and body["model"]["modelID"] for body in sent] == ["two", "one"]
    assert {body and body["model"]["providerID"] for body in sent} == {"scripted"}


async def test_a_model_that_is_not_offered_is_refused_and_the_offered_are_named(
    codex: Bridge, twin: Twin
) -> None:
    answer = await codex.call("codex", prompt="SAY:x", model="gpt-5.2-codex")
    assert (answer.is_error, answer.thread_id) == (True, "")
    assert "'gpt-5.2-codex' is not offered" in answer.content
    assert "scripted/two" in answer.content
    assert twin.world.sessions == {}


# --- what the agent asks


async def test_never_rejects_at_once_and_the_answer_says_so(codex: Bridge, asking: Path) -> None:
    script = f"{ASKING}\nTHEN\nSAY:without it"
    answer = await codex.call("codex", prompt=script, cwd=str(asking), approval_policy="never")
    assert not answer.is_error
    assert answer.content.startswith("without it\n\nWarning APPROVAL_REJECTED")


async def test_on_request_without_a_person_rejects_at_once_and_never_hangs(
    codex: Bridge, asking: Path
) -> None:
    """Codex waited for ever for an answer that its client could not give."""
    script = f"{ASKING}\nTHEN\nSAY:without it"
    answer = await asyncio.wait_for(
        codex.call("codex", prompt=script, cwd=str(asking), approval_policy="on-request"), 30
    )
    assert not answer.is_error
    assert "without it" in answer.content
    assert "cannot ask a person" in answer.content
    assert "opencode with approval-policy caller" in answer.content


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("allow", [True, False], ids=["allowed", "declined"])
async def test_on_request_asks_the_person_at_the_client(
    bridges: Bridges, twin: Twin, asking: Path, *, mode: Era, allow: bool
) -> None:
    asked: list[str] = []

    async def person(message: str, *_: object) -> ElicitResult[Json]:
        asked.append(message)
        return ElicitResult(action="accept", content={"allow": allow})

    codex = await bridges.attached(CODEX_TOOLS="true", mode=mode, person=person)
    script = f"{ASKING}\nTHEN\nSAY:done"
    more: Json = {"cwd": str(asking), "approval-policy": "on-request"}
    first = await codex.call_exactly("codex", {"prompt": script, **more})
    second = await reply(codex, first.thread_id, script)
    assert len(asked) == 2
    assert "echo hello" in asked[0]
    for answer in (first, second):
        assert not answer.is_error, answer.text
        assert answer.content.startswith("done")
        assert ("APPROVAL_REJECTED" in answer.content) is not allow
    assert len(submissions(twin)) == 2, "a repeated call submits nothing"


@pytest.mark.parametrize("mode", ERAS)
async def test_more_asks_than_a_call_can_be_repeated_for_are_rejected_and_the_turn_ends(
    bridges: Bridges, asking: Path, mode: Era
) -> None:
    """Ours: there is no second call that could go on, and a client repeats one 10 times."""
    asked: list[str] = []

    async def person(message: str, *_: object) -> ElicitResult[Json]:
        asked.append(message)
        return ElicitResult(action="accept", content={"allow": True})

    codex = await bridges.attached(CODEX_TOOLS="true", mode=mode, person=person)
    script = "\nTHEN\n".join([*[ASKING] * 11, "SAY:done"])
    more: Json = {"cwd": str(asking), "approval-policy": "on-request"}
    answer = await codex.call_exactly("codex", {"prompt": script, **more})
    assert not answer.is_error, answer.text
    assert answer.content.startswith("done")
    assert len(asked) == (11 if mode == "legacy" else 8)
    assert (ASKED_TOO_OFTEN in answer.content) is (mode == "auto")


async def test_an_operators_default_that_codex_did_not_know_means_that_a_person_is_asked(
    bridges: Bridges, project: Path
) -> None:
    codex = await bridges.attached(CODEX_TOOLS="true", DEFAULT_APPROVAL_POLICY="caller")
    answer = await asyncio.wait_for(codex.call("codex", prompt=QUESTION, cwd=str(project)), 30)
    assert "cannot ask a person" in answer.content


async def test_a_reply_in_a_session_of_policy_caller_returns_what_its_caller_must_answer(
    codex: Bridge, asking: Path
) -> None:
    """Ours: it was started by opencode, so its caller knows opencode-approve."""
    session = await codex.start("SAY:x", asking, approval_policy="caller")
    answer = await asyncio.wait_for(reply(codex, session.session_id, f"{ASKING}\nTHEN\nSAY:y"), 30)
    assert answer.is_error
    assert "Waiting for permission per_" in answer.content
    assert "opencode-approve" in answer.content
    assert (await codex.end(session.session_id)).status == "ended"

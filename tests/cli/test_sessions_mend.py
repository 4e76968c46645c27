"""`sessions alias` and `sessions forget`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.app.presence import Presence
from opencode_mcp.engine import operating
from opencode_mcp.engine.ends import Ended, answer_json, answer_of, how_it_ended, is_given_up
from opencode_mcp.errors import SessionNotFoundError
from opencode_mcp.records import EndAction
from opencode_mcp.store.store import Store
from tests.cli.command import Command, database, rows
from tests.store.make import a_tombstone
from tests.support.polling import eventually
from tests.twin import Status

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.records import Tombstone
    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin


async def test_an_alias_names_the_session_for_its_callers(
    command: Command, bridge: Bridge, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    said = await command.run("sessions", "alias", session_id, "old-thread")
    assert (said.code, said.out) == (0, f"old-thread names {session_id}\n")
    assert (await bridge.status("old-thread")).session_id == session_id
    again = await command.run("sessions", "alias", "old-thread", "older-thread", "--json")
    assert again.json == {"sessionId": session_id, "aliases": ["old-thread", "older-thread"]}


@pytest.mark.parametrize(
    ("name", "told"),
    [("", "printable"), (" x", "blanks"), ("a\tb", "printable"), ("x" * 201, "at most 200")],
    ids=["empty", "blank", "tab", "long"],
)
async def test_a_name_that_no_caller_could_send_is_refused(
    command: Command, bridge: Bridge, project: Path, name: str, told: str
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    said = await command.run("sessions", "alias", session_id, name)
    assert (said.code, said.out) == (2, "")
    assert told in said.err


async def test_an_alias_that_names_another_session_is_refused(
    command: Command, bridge: Bridge, project: Path
) -> None:
    first = (await bridge.start("SAY:x", project)).session_id
    second = (await bridge.start("SAY:x", project)).session_id
    said = await command.run("sessions", "alias", first, second)
    assert (said.code, said.out) == (1, "")
    assert "already names a session" in said.err
    nothing = await command.run("sessions", "alias", "ses_nope", "name")
    assert (nothing.code, "no session 'ses_nope' is tracked" in nothing.err) == (3, True)


async def test_nothing_is_forgotten_without_the_word_for_it(
    command: Command, bridge: Bridge, project: Path, twin: Twin
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    said = await command.run("sessions", "forget", session_id)
    assert (said.code, said.out) == (2, "")
    assert f"`opencode-mcp sessions end {session_id}`" in said.err
    assert f"its OpenCode ({twin.url}) will never answer again" in said.err
    assert "neither deleted nor archived" in said.err
    assert (await bridge.status(session_id)).status == "completed"


async def test_forgetting_sends_nothing_and_says_what_is_given_up(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    bridge = await bridges.attached(ON_EXIT="keep")
    session_id = await bridge.begin("HANG", project)
    await bridge.close()
    since = len(twin.requests)
    said = await command.run("sessions", "forget", session_id, "--unproven")
    assert said.code == 0, said.err
    assert f"{session_id} is not tracked any more. Nothing was confirmed" in said.out
    assert "its turn 1 may run on" in said.out
    assert "stay in that OpenCode's data" in said.out
    assert not twin.lines(since)
    assert session_id in twin.runs.running
    assert await rows(command, "SELECT id FROM sessions") == []
    assert await rows(command, "SELECT session_id FROM turns") == []


async def test_callers_are_told_that_nothing_was_proven(
    command: Command, bridge: Bridge, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    said = await command.run("sessions", "forget", session_id, "--unproven", "--json")
    assert said.json["status"] == "forgotten"
    assert said.json["turnMayRun"] is False
    reply = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:y")
    assert reply.error == "SESSION_NOT_FOUND"
    assert "was forgotten by an operator at" in reply.text
    assert "without proof that it ended" in reply.text
    end = await bridge.end(session_id)
    assert (end.status, "without proof that it ended" in end.text) == ("not_found", True)
    shown = await command.run("sessions", "show", session_id, "--json")
    assert (shown.json["status"], shown.json["action"]) == ("forgotten", None)
    again = await command.run("sessions", "forget", session_id, "--unproven")
    assert (again.code, "was forgotten by an operator" in again.err) == (3, True)


async def test_a_pending_end_is_given_up_and_no_server_tries_it_again(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    bridge = await bridges.attached(CLEANUP_TIMEOUT_SECONDS="1")
    session_id = (await bridge.start("SAY:x", project)).session_id
    twin.fail(Status(500), method="DELETE", times=None)
    assert (await bridge.end(session_id)).status == "ending"
    said = await command.run("sessions", "forget", session_id, "--unproven")
    assert said.code == 0, said.err
    assert "its delete, accepted at" in said.out
    assert (await bridge.end(session_id)).status == "not_found"
    assert await rows(command, "SELECT phase FROM sessions") == []


async def test_who_is_at_work_on_the_end_is_waited_for(
    command: Command, bridge: Bridge, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    async with Store.open(database(command)) as store:
        with Presence(_processes(command)) as other:
            lease = await store.take_lease(session_id, other.name, None)
            assert lease is not None
            process = await command.start("sessions", "forget", session_id, "--unproven")
            assert process.stderr is not None
            waiting = (await process.stderr.readline()).decode()
            assert "a server is at work on its end" in waiting
            assert await rows(command, "SELECT id FROM sessions") == [(session_id,)]
            await store.release_lease(lease)
        said = await command.ended(process)
    assert said.code == 0, said.err


async def test_who_works_on_the_end_for_too_long_is_told_to_the_operator(
    command: Command, bridge: Bridge, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operating, "_LEASE_PATIENCE_S", 0.3)
    session_id = (await bridge.start("SAY:x", project)).session_id
    async with Store.open(database(command)) as store:
        with Presence(_processes(command)) as other:
            assert await store.take_lease(session_id, other.name, None)
            said = await command.run("sessions", "forget", session_id, "--unproven")
    assert (said.code, said.out) == (1, "")
    assert "try again, or stop that server first" in said.err
    assert await rows(command, "SELECT id FROM sessions") == [(session_id,)]


async def test_an_end_that_is_under_way_elsewhere_never_claims_a_forgotten_session(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    """Ours: it is in another process's hands, out of reach, when the row goes."""
    bridge = await bridges.attached(CLEANUP_TIMEOUT_SECONDS="1")
    session_id = (await bridge.start("SAY:x", project)).session_id
    twin.fail(Status(500), method="DELETE", times=None)
    await bridge.end(session_id)
    await command.run("sessions", "forget", session_id, "--unproven")

    async def forgotten() -> bool:
        answer = await bridge.status(session_id)
        return "without proof" in answer.text

    await eventually(forgotten, what="the server has noticed")
    (kept,) = await rows(command, "SELECT answer_json FROM tombstones")
    assert json.loads(kept[0]) == {"given_up": True}


def test_a_tombstone_without_proof_is_no_answer() -> None:
    ended = Ended("ses_1", EndAction.DELETE, False, 0, 0, 0)  # noqa: FBT003 - its fields in order
    proven = _with_answer(answer_json(ended))
    given_up = _with_answer('{"given_up": true}')
    assert answer_of(proven) == ended
    assert not is_given_up(proven)
    assert "ended at" in how_it_ended(proven)
    assert is_given_up(given_up)
    with pytest.raises(SessionNotFoundError, match="without proof"):
        answer_of(given_up)


def _with_answer(text: str) -> Tombstone:
    return replace(a_tombstone(), answer_json=text)


def _processes(command: Command) -> Path:
    path = database(command)
    return path.with_name(f"{path.name}.processes")

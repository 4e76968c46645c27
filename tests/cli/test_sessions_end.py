"""`sessions end`: the same procedure as opencode-end, with its proof in the exit code."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import Command, rows
from tests.support.polling import eventually
from tests.twin import Hang, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin


async def test_a_running_turn_is_stopped_and_its_session_deleted(
    command: Command, bridge: Bridge, project: Path, twin: Twin
) -> None:
    session_id = await bridge.begin("HANG", project)
    said = await command.process("sessions", "end", session_id)
    assert said.code == 0, said.err
    assert said.out == (
        f"{session_id} ended: deleted and confirmed; its running turn was stopped\n"
    )
    assert "ending 1 session" in said.err
    assert session_id not in twin.world.sessions
    assert session_id not in twin.runs.running
    assert await bridge.is_ended(session_id)


async def test_several_are_ended_and_each_is_told(
    command: Command, bridge: Bridge, project: Path, twin: Twin
) -> None:
    ids = [(await bridge.start("SAY:x", project)).session_id for _ in range(3)]
    await rows(command, f"UPDATE sessions SET owner = 'token:alice' WHERE id = '{ids[0]}'")  # noqa: S608
    said = await command.run("sessions", "end", "--json", "--action", "archive", *ids)
    assert said.code == 0, said.err
    assert [(end["sessionId"], end["status"], end["action"]) for end in said.json["ends"]] == [
        (one, "ended", "archive") for one in ids
    ]
    assert all("archived" in twin.world.sessions[one]["time"] for one in ids)


async def test_the_setting_decides_where_no_action_is_named(
    command: Command, bridge: Bridge, project: Path, twin: Twin
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    said = await command.run("sessions", "end", session_id, "--end-action", "archive")
    assert f"{session_id} ended: archived and confirmed" in said.out
    assert "archived" in twin.world.sessions[session_id]["time"]


async def test_an_unknown_and_an_ended_session_are_not_found(
    command: Command, bridge: Bridge, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    await bridge.end(session_id)
    said = await command.run("sessions", "end", session_id, "ses_nope", "--json")
    assert said.code == 3
    ended, unknown = said.json["ends"]
    assert (ended["status"], unknown["status"]) == ("not_found", "not_found")
    assert "(delete)" in ended["message"]
    assert "is tracked" in unknown["message"]


async def test_one_that_is_not_found_does_not_hinder_the_others(
    command: Command, bridge: Bridge, project: Path, twin: Twin
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    said = await command.run("sessions", "end", "ses_nope", session_id)
    assert said.code == 3
    assert session_id not in twin.world.sessions


async def test_what_is_not_confirmed_is_said_and_goes_on_when_run_again(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    bridge = await bridges.attached()
    session_id = (await bridge.start("SAY:x", project)).session_id
    await bridge.close()
    fault = twin.fail(Status(500), method="DELETE", times=None)
    quick = command.with_settings(CLEANUP_TIMEOUT_SECONDS="3")
    said = await quick.run("sessions", "end", session_id)
    assert (said.code, said.out) == (1, "")
    assert f"{session_id} is not confirmed to have ended" in said.err
    assert "any server on this database goes on with it" in said.err
    assert await rows(command, "SELECT phase FROM sessions") == [("ending",)]
    fault.release()
    # told at once: a 500 is asked for again, and what comes of the last try depends on the machine
    fault = twin.fail(Status(400), method="DELETE", times=None)
    as_json = await command.run("sessions", "end", session_id, "--json")
    assert as_json.json["ends"][0]["status"] == "ending"
    assert as_json.json["ends"][0]["error"]["name"] == "UPSTREAM_ERROR"
    fault.release()
    again = await command.run("sessions", "end", session_id)
    assert again.code == 0, again.err
    assert session_id not in twin.world.sessions


async def test_progress_tells_why_it_takes_long(
    command: Command, bridge: Bridge, project: Path, twin: Twin
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    twin.fail(Status(500), method="DELETE", times=None)
    said = await command.with_settings(CLEANUP_TIMEOUT_SECONDS="5").run(
        "sessions", "end", session_id
    )
    assert said.code == 1
    assert f"{session_id}: attempt " in said.err
    assert "failed: DELETE /session/" in said.err


async def test_a_server_on_the_same_database_finishes_what_the_command_could_not(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    bridge = await bridges.attached()
    session_id = (await bridge.start("SAY:x", project)).session_id
    fault = twin.fail(Status(500), method="DELETE", times=None)
    said = await command.with_settings(CLEANUP_TIMEOUT_SECONDS="1").run(
        "sessions", "end", session_id
    )
    assert said.code == 1
    fault.release()

    async def ended() -> bool:
        return await bridge.is_ended(session_id)

    await eventually(ended, what="the server ends it")
    assert session_id not in twin.world.sessions


async def test_an_archive_over_a_pending_delete_is_refused(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    bridge = await bridges.attached()
    session_id = (await bridge.start("SAY:x", project)).session_id
    await bridge.close()
    twin.fail(Status(500), method="DELETE", times=None)
    quick = command.with_settings(CLEANUP_TIMEOUT_SECONDS="1")
    await quick.run("sessions", "end", session_id)
    said = await quick.run("sessions", "end", session_id, "--action", "archive", "--json")
    assert said.code == 1
    assert said.json["ends"][0]["error"]["name"] == "END_CONFLICT"


async def test_a_wrong_password_is_told_at_once(
    command: Command, bridge: Bridge, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    wrong = command.with_settings(SERVER_PASSWORD="not-this-one", CLEANUP_TIMEOUT_SECONDS="60")
    said = await wrong.run("sessions", "end", session_id, "--json")
    assert said.code == 1
    assert said.json["ends"][0]["error"]["name"] == "OPENCODE_UNAUTHORIZED"
    assert "not-this-one" not in said.out + said.err


async def test_the_sessions_of_another_opencode_are_not_touched(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    """Contract §1: a session is acted on through its own instance; the text names `rebind`."""
    bridge = await bridges.attached()
    session_id = (await bridge.start("SAY:x", project)).session_id
    await bridge.close()
    since = len(twin.requests)
    other = command.with_settings(SERVER_URL="http://127.0.0.1:1")
    said = await other.run("sessions", "end", session_id)
    assert said.code == 1
    assert f"runs in the OpenCode at {twin.url}" in said.err
    assert f"opencode-mcp sessions rebind {twin.url}" in said.err
    assert not twin.lines(since)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
async def test_a_signal_ends_the_waiting_and_the_end_stays_recorded(
    command: Command, bridges: Bridges, project: Path, twin: Twin, number: signal.Signals
) -> None:
    bridge = await bridges.attached()
    session_id = (await bridge.start("SAY:x", project)).session_id
    await bridge.close()
    plan = twin.fail(Hang(), method="DELETE", times=None)
    process = await command.with_settings(CLEANUP_TIMEOUT_SECONDS="60").start(
        "sessions", "end", session_id
    )
    async with asyncio.timeout(20):
        while not [line for line in twin.lines() if line.startswith("DELETE")]:
            await asyncio.sleep(0.05)
    process.send_signal(number)
    said = await command.ended(process)
    assert said.code == 1
    assert "the end is recorded" in said.err
    assert await rows(command, "SELECT phase FROM sessions") == [("ending",)]
    assert await rows(command, "SELECT holder FROM leases") == [(None,)]
    plan.release()

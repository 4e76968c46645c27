"""`sessions list` and `sessions show`: everybody's sessions, and nothing is begun by looking."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.command import Command, rows
from tests.support.victim import Errand, Victim

if TYPE_CHECKING:
    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin

_TITLE = "A title that is longer than a terminal of eighty columns has room for, by far"


async def give_to(command: Command, session_id: str, owner: str) -> None:
    await rows(command, f"UPDATE sessions SET owner = '{owner}' WHERE id = '{session_id}'")  # noqa: S608


async def test_everybodys_sessions_are_listed_with_where_they_stand(
    command: Command, bridge: Bridge, project: Path
) -> None:
    idle = (await bridge.start("SAY:hello", project, title="First")).session_id
    running = await bridge.begin("HANG", project)
    await give_to(command, idle, "token:alice")
    said = await command.run("sessions", "list", "--json")
    listed = {one["sessionId"]: one for one in said.json["sessions"]}
    assert (said.code, said.err) == (0, "")
    assert listed[idle]["status"], listed[running]["status"] == ("idle", "running")
    assert listed[idle]["owner"] == "token:alice"
    assert (listed[idle]["title"], listed[idle]["turns"]) == ("First", 1)
    assert listed[running]["directory"] == str(project)
    assert (said.json["total"], said.json["hasMore"]) == (2, False)


async def test_a_page_says_where_the_next_one_begins(
    command: Command, bridge: Bridge, project: Path
) -> None:
    ids = [(await bridge.start("SAY:x", project)).session_id for _ in range(3)]
    first = await command.run("sessions", "list", "--json", "--limit", "2")
    assert [one["sessionId"] for one in first.json["sessions"]] == [ids[2], ids[1]]
    assert (first.json["total"], first.json["nextOffset"]) == (3, 2)
    last = await command.run("sessions", "list", "--json", "--limit", "2", "--offset", "2")
    assert [one["sessionId"] for one in last.json["sessions"]] == [ids[0]]
    assert "nextOffset" not in last.json
    table = await command.run("sessions", "list", "--limit", "2")
    assert "2 of 3 sessions, from 0; more with --offset 2" in table.err


async def test_one_owners_sessions_can_be_listed_alone(
    command: Command, bridge: Bridge, project: Path
) -> None:
    hers = (await bridge.start("SAY:x", project)).session_id
    await bridge.start("SAY:x", project)
    await give_to(command, hers, "token:alice")
    said = await command.run("sessions", "list", "--json", "--owner", "token:alice")
    assert [one["sessionId"] for one in said.json["sessions"]] == [hers]
    nobody = await command.run("sessions", "list", "--owner", "token:nobody")
    assert (nobody.code, nobody.out) == (0, "")
    assert "no session of token:nobody is tracked" in nobody.err


async def test_a_pipe_gets_whole_lines_without_colours(
    command: Command, bridge: Bridge, project: Path
) -> None:
    await bridge.begin("HANG", project, title=_TITLE)
    said = await command.process("sessions", "list")
    heading, line = said.out.splitlines()
    assert heading.split() == ["SESSION", "STATUS", "TURNS", "USED", "TITLE"]
    assert re.fullmatch(rf"ses_\w{{26}}  running  1      \d+ s +{_TITLE}", line)


async def test_a_terminal_of_80_columns_gets_whole_ids_and_cut_titles(
    command: Command, bridge: Bridge, project: Path
) -> None:
    session_id = await bridge.begin("HANG", project, title=_TITLE)
    await give_to(command, session_id, "token:alice")
    shown = await command.on_terminal("sessions", "list", columns=80)
    assert "\x1b[" in shown, "no colour on a terminal"
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown).splitlines()
    assert all(len(line) <= 80 for line in plain), plain
    assert re.match(rf"{session_id}  running  1      \d+ s\s+token:alice  A ", plain[1])
    assert "…" in plain[1]


async def test_a_title_cannot_drive_the_terminal(
    command: Command, bridge: Bridge, project: Path
) -> None:
    await bridge.start("SAY:x", project, title="x\x1b[2Jy")
    # click takes escape sequences out of what goes into a pipe; on a terminal that is ours to do
    shown = await command.on_terminal("sessions", "list", columns=120)
    assert "x\N{REPLACEMENT CHARACTER}[2Jy" in shown


async def test_without_its_opencode_a_session_is_unknown(
    command: Command, bridge: Bridge, project: Path, twin: Twin
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    await twin.refuse()
    command = command.with_settings(REQUEST_TIMEOUT_SECONDS="1")
    listed = await command.run("sessions", "list", "--json")
    assert [one["status"] for one in listed.json["sessions"]] == ["unknown"]
    shown = await command.run("sessions", "show", "--json", session_id)
    assert shown.json["status"] == "unknown"
    assert "unknownBecause" in shown.json


async def test_looking_starts_no_opencode(
    command: Command, bridge: Bridge, bridges: Bridges, project: Path
) -> None:
    """Ours: in managed mode, where an OpenCode that has ended would be started by a call."""
    session_id = (await bridge.start("SAY:x", project)).session_id
    await rows(
        command,
        "INSERT INTO instances (id, kind, data_id, dead) VALUES ('gone', 'managed', 'data', 1)",
    )
    await rows(command, "UPDATE sessions SET instance_id = 'gone'")
    managed = command.with_settings(SERVER_URL="", SERVER_PASSWORD="", OPENCODE_BIN="/bin/false")
    listed = await managed.run("sessions", "list", "--json")
    assert [one["status"] for one in listed.json["sessions"]] == ["idle"]
    shown = await managed.run("sessions", "show", session_id, "--json")
    assert (shown.code, shown.json["instance"]["isDead"]) == (0, True)
    assert not list(Path(f"{bridges.database}.instances").glob("*.json"))


async def test_a_database_that_is_not_there_is_told_and_not_made(
    command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "elsewhere" / "t.db"
    said = await command.with_settings(DATABASE=str(path)).run("sessions", "list")
    assert (said.code, said.out) == (1, "")
    assert f"there is no tracking database at {path}" in said.err
    assert not path.parent.exists()


async def test_all_that_is_known_of_a_session_is_shown_but_no_content(
    command: Command, bridge: Bridge, project: Path, twin: Twin
) -> None:
    answer = await bridge.start("SAY:secret words", project, title="T", agent="build")
    await command.run("sessions", "alias", answer.session_id, "old-thread")
    said = await command.run("sessions", "show", "old-thread", "--json")
    shown = said.json
    assert shown["sessionId"] == answer.session_id
    assert shown["status"] == "completed"
    assert shown["aliases"] == ["old-thread"]
    assert shown["instance"]["url"] == twin.url
    assert (shown["turn"]["turn"], shown["turn"]["isHeld"]) == (1, False)
    assert shown["turn"]["turnId"] == answer.structured["turnId"]
    assert (shown["agent"], shown["sandbox"]) == ("build", "workspace-write")
    text = await command.run("sessions", "show", answer.session_id)
    assert "secret words" not in said.out + text.out
    assert "aliases   old-thread" in text.out


async def test_a_running_turn_is_shown_with_who_keeps_it(
    command: Command, bridge: Bridge, project: Path
) -> None:
    session_id = await bridge.begin("HANG", project)
    said = await command.run("sessions", "show", session_id)
    assert "status    running" in said.out
    assert "kept by a server that runs, to stop at" in said.out


async def test_looking_takes_no_turn_up_and_stops_none(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    """Ours: a server would answer for a turn whose process is dead, and stop it at its exit."""
    errand = Errand(env=bridges.attach_env(), folder=project, job="start", prompts=("HANG",))
    victim = Victim(errand)
    session_id = await victim.answer()
    await victim.kill()
    before = await rows(command, "SELECT * FROM turns")
    said = await command.run("sessions", "show", session_id, "--json")
    assert (said.json["status"], said.json["turn"]["isHeld"]) == ("running", False)
    await command.run("sessions", "list")
    assert await rows(command, "SELECT * FROM turns") == before
    assert session_id in twin.runs.running
    assert not [line for line in twin.lines() if line.startswith("POST") and "abort" in line]


async def test_how_a_session_ended_is_shown(
    command: Command, bridge: Bridge, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    await bridge.end(session_id, action="archive")
    said = await command.run("sessions", "show", session_id, "--json")
    assert (said.code, said.json["status"], said.json["action"]) == (0, "ended", "archive")
    assert "status   ended" in (await command.run("sessions", "show", session_id)).out


async def test_where_an_end_stands_is_shown(
    command: Command, bridge: Bridge, project: Path, twin: Twin
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    await twin.refuse()
    command = command.with_settings(REQUEST_TIMEOUT_SECONDS="1", CLEANUP_TIMEOUT_SECONDS="1")
    await command.run("sessions", "end", session_id)
    listed = await command.run("sessions", "list", "--json")
    assert listed.json["sessions"][0]["status"] == "ending"
    shown = await command.run("sessions", "show", session_id, "--json")
    assert shown.json["ending"]["action"] == "delete"
    assert shown.json["ending"]["attempt"] >= 1
    text = await command.run("sessions", "show", session_id)
    assert "ending    delete accepted" in text.out


async def test_an_unknown_id_is_told_with_where_to_look(command: Command, bridge: Bridge) -> None:
    del bridge
    said = await command.run("sessions", "show", "ses_nope")
    assert (said.code, said.out) == (3, "")
    assert "no session 'ses_nope' is tracked" in said.err
    assert "`opencode-mcp sessions list`" in said.err

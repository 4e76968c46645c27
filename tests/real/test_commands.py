"""The commands on a real OpenCode: what the twin cannot show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cli.command import Command
from tests.real.support.processes import opencode_servers_of_home, processes_of_home
from tests.real.support.scripts import bash
from tests.support.polling import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.bridges import RealBridges
    from tests.real.support.processes import Marker
    from tests.real.support.sandbox import Sandbox


async def test_the_doctor_starts_an_opencode_and_leaves_nothing_behind(
    bridges: RealBridges, sandbox: Sandbox, tmp_path: Path
) -> None:
    """Ours: and where servers have one, it looks at that."""
    temporary = tmp_path / "doctor-tmp"
    temporary.mkdir()
    command = Command(bridges.managed_env(sandbox)).with_settings(DEFAULT_MODEL="scripted/one")
    command.env["TMPDIR"] = str(temporary)
    said = await command.process("doctor", "--json")
    assert said.code == 0, said.out
    texts = {one["check"]: one["text"] for one in said.json["checks"]}
    assert "started in" in texts["OpenCode"]
    assert "scripted" in texts["providers"]
    assert texts["model"] == "scripted/one (DEFAULT_MODEL) is there"
    assert not processes_of_home(sandbox.home), "its OpenCode is still there"
    assert not list(temporary.glob("opencode-mcp*"))
    assert not list(bridges.database.parent.glob(f"{bridges.database.name}*"))

    bridge = await bridges.managed_process(sandbox)
    project = tmp_path / "joined"
    project.mkdir()
    await bridge.start("SAY:x", project)
    before = {server.pid for server in opencode_servers_of_home(sandbox.home)}
    # its environment is what makes an OpenCode "the same"
    joined = Command(bridges.managed_env(sandbox))
    said = await joined.process("doctor", "--json")
    texts = {one["check"]: one["text"] for one in said.json["checks"]}
    assert "the one that servers use now" in texts["OpenCode"], texts
    assert {server.pid for server in opencode_servers_of_home(sandbox.home)} == before


async def test_a_running_turn_of_a_managed_server_is_ended_by_the_command(
    bridges: RealBridges, sandbox: Sandbox, tmp_path: Path, marker: Marker
) -> None:
    bridge = await bridges.managed_process(sandbox)
    project = tmp_path / "work"
    project.mkdir()
    session_id = await bridge.begin(bash(marker.command), project)
    await eventually(marker.alive, what="the agent's command runs")
    command = Command(bridges.managed_env(sandbox))
    listed = await command.process("sessions", "list", "--json")
    assert [one["status"] for one in listed.json["sessions"]] == ["running"]
    said = await command.process("sessions", "end", session_id)
    assert said.code == 0, said.err
    assert "its running turn was stopped" in said.out
    await eventually(marker.gone, what="the agent's command is gone")
    assert await bridge.is_ended(session_id)
    assert len(opencode_servers_of_home(sandbox.home)) == 1

"""Managed mode through the server: started when needed, gone when we are, sessions survive."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from tests.real.support.processes import (
    GONE_WITHIN_S,
    all_gone,
    opencode_servers_of_home,
)
from tests.real.support.scripts import ENDLESS, bash
from tests.support.polling import eventually, steadily

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import ScriptedModel
    from tests.real.support.bridges import ManagedWitnesses, RealBridges
    from tests.real.support.processes import Marker
    from tests.real.support.sandbox import Sandbox


async def test_opencode_is_started_by_the_first_call_that_needs_it(
    bridges: RealBridges, sandbox: Sandbox, project: Path
) -> None:
    bridge = await bridges.managed_process(sandbox)
    await bridge.client.list_tools()
    before = opencode_servers_of_home(sandbox.home)
    answer = await bridge.start("SAY:started", project)
    after = opencode_servers_of_home(sandbox.home)

    assert before == []
    assert (answer.status, "started" in answer.text) == ("completed", True)
    assert len(after) == 1
    assert not any("password" in part.lower() for part in after[0].cmdline())


async def test_a_session_survives_a_restart_of_ours_and_is_continued_and_ended(
    bridges: RealBridges, sandbox: Sandbox, managed_witness: ManagedWitnesses, project: Path
) -> None:
    """Case B29: another process, another OpenCode, the same session."""
    first = await bridges.managed_process(sandbox)
    session_id = (await first.start("remember ALPHA", project)).session_id
    await first.close()
    await first.dead()
    await all_gone(sandbox.home)

    second = await bridges.managed_process(sandbox)
    listed = await second.listed()
    reply = await second.call("opencode-reply", sessionId=session_id, prompt="SAY:continued")
    witness = await managed_witness.of(sandbox)
    said = await witness.user_texts(session_id)
    ended = await second.end(session_id)

    assert set(listed) == {session_id}
    assert reply.status == "completed"
    assert (reply.structured["turn"], reply.structured["directory"]) == (2, str(project))
    assert said == ["remember ALPHA", "SAY:continued"]
    assert ended.status == "ended"
    await witness.ended(session_id, project)


async def test_an_end_is_the_first_thing_that_a_new_process_does(
    bridges: RealBridges,
    sandbox: Sandbox,
    managed_witness: ManagedWitnesses,
    project: Path,
) -> None:
    first = await bridges.managed_process(sandbox)
    session_id = (await first.start("SAY:ready", project)).session_id
    await first.close()
    await all_gone(sandbox.home)

    second = await bridges.managed(sandbox)
    ended = await second.end(session_id)

    assert ended.status == "ended"
    witness = await managed_witness.of(sandbox)
    await witness.ended(session_id, project)


async def test_nothing_outlives_a_server_of_ours_that_was_killed(
    bridges: RealBridges,
    sandbox: Sandbox,
    managed_witness: ManagedWitnesses,
    project: Path,
    marker: Marker,
) -> None:
    """The supervisor disposes and stops OpenCode and its children; the session can go on."""
    first = await bridges.managed_process(sandbox)
    session_id = await first.begin(bash(marker.command), project)
    await eventually(marker.alive, what="the command runs")
    first.signal(signal.SIGKILL)
    await first.dead()
    await eventually(marker.gone, within_s=GONE_WITHIN_S, what="the command is gone")
    await all_gone(sandbox.home)

    second = await bridges.managed(sandbox)
    status = await second.settled(session_id)
    reply = await second.call("opencode-reply", sessionId=session_id, prompt="SAY:alive")
    ended = await second.end(session_id)

    assert status.status in {"failed", "cancelled"}
    assert (reply.status, "alive" in reply.text) == ("completed", True)
    assert ended.status == "ended"
    witness = await managed_witness.of(sandbox)
    await witness.ended(session_id, project, marker=marker)


async def test_a_killed_opencode_takes_its_shell_commands_along_and_is_replaced(
    bridges: RealBridges,
    sandbox: Sandbox,
    managed_witness: ManagedWitnesses,
    project: Path,
    marker: Marker,
) -> None:
    """OpenCode: a shell child survives its own death (facts 9.4)."""
    bridge = await bridges.managed(sandbox)
    session_id = await bridge.begin(bash(marker.command), project)
    await eventually(marker.alive, what="the command runs")
    (server,) = opencode_servers_of_home(sandbox.home)
    server.kill()
    await eventually(marker.gone, within_s=GONE_WITHIN_S, what="the command is gone")
    status = await bridge.settled(session_id)
    reply = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:alive")
    ended = await bridge.end(session_id)

    assert status.status == "failed"
    assert (reply.status, "alive" in reply.text) == ("completed", True)
    assert ended.status == "ended"
    witness = await managed_witness.of(sandbox)
    await witness.ended(session_id, project, marker=marker)


async def test_an_end_during_which_the_managed_opencode_is_killed_is_true(
    bridges: RealBridges,
    sandbox: Sandbox,
    managed_witness: ManagedWitnesses,
    project: Path,
    marker: Marker,
) -> None:
    bridge = await bridges.managed(sandbox)
    session_id = await bridge.begin(bash(marker.command), project)
    await eventually(marker.alive, what="the command runs")
    (server,) = opencode_servers_of_home(sandbox.home)
    ending = asyncio.create_task(bridge.end(session_id))
    await eventually(bridges.is_ending, what="the end is accepted")
    server.kill()
    ended = await ending
    while ended.status == "ending":  # its supervisor is still clearing up
        ended = await bridge.end(session_id)

    assert ended.status == "ended"
    assert not marker.pids()
    witness = await managed_witness.of(sandbox)
    await witness.ended(session_id, project, marker=marker)


async def test_a_missing_binary_is_told_with_what_to_do(
    bridges: RealBridges, sandbox: Sandbox, project: Path
) -> None:
    bridge = await bridges.managed(sandbox, OPENCODE_BIN="/nowhere/opencode")
    answer = await bridge.call("opencode", prompt="SAY:x", cwd=str(project))

    assert (answer.is_error, answer.error) == (True, "OPENCODE_UNAVAILABLE")
    assert "/nowhere/opencode" in answer.text
    assert "OPENCODE_MCP_OPENCODE_BIN" in answer.text
    assert await bridge.listed() == {}


async def test_a_streaming_turn_stops_when_its_server_leaves(
    bridges: RealBridges, sandbox: Sandbox, model: ScriptedModel, project: Path
) -> None:
    bridge = await bridges.managed_process(sandbox)
    session_id = await bridge.begin(ENDLESS, project)

    def streams() -> list[int]:
        return [one.number for one in model.open_streams if one.session_id == session_id]

    async def streaming() -> bool:
        return bool(streams())

    async def silent() -> bool:
        return not streams()

    await eventually(streaming, what="the model answers")
    await bridge.close()
    await all_gone(sandbox.home)
    await eventually(silent, within_s=5, what="the model is left alone")
    await steadily(silent, for_s=1, what="nobody asks the model again")

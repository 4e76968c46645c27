"""Two servers of ours on one database, each asked about the other's running session.

Contract §1, Instance: execution lives in one OpenCode process, and a session is ended through that
process or not at all. Never is a session called ended that runs on somewhere else.

Where locks between processes decide, one of the two is this process and the other one is not.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.real.support.processes import Marker, opencode_servers_of_home
from tests.real.support.sandbox import write_project
from tests.real.support.scripts import ENDLESS, bash
from tests.support.polling import eventually, steadily

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.support.bridges import ManagedWitnesses, RealBridges
    from tests.real.support.sandbox import Sandbox
    from tests.real.support.witness import Witness
    from tests.support.bridge import Bridge

import pytest


@pytest.fixture
def markers() -> Iterator[tuple[Marker, Marker]]:
    """Give two shell commands."""
    pair = (Marker(), Marker())
    yield pair
    for one in pair:
        one.kill()


async def sleeping(bridge: Bridge, folder: Path, marker: Marker) -> str:
    """Start a session whose turn runs a shell command, and wait until it does."""
    session_id = await bridge.begin(bash(marker.command), folder)
    await eventually(marker.alive, what="the command runs")
    return session_id


async def test_two_that_share_a_managed_opencode_end_each_others_sessions(
    bridges: RealBridges,
    sandbox: Sandbox,
    managed_witness: ManagedWitnesses,
    project: Path,
    markers: tuple[Marker, Marker],
) -> None:
    left, right = await bridges.managed(sandbox), await bridges.managed_process(sandbox)
    first = await sleeping(left, project, markers[0])
    second = await sleeping(right, project, markers[1])
    servers = opencode_servers_of_home(sandbox.home)
    listed = await left.listed()
    witness = await managed_witness.of(sandbox)
    ended = await asyncio.gather(left.end(second), right.end(first))

    assert len(servers) == 1, "the second joins the first's OpenCode"
    assert listed == {first: "running", second: "running"}
    assert [answer.status for answer in ended] == ["ended", "ended"]
    assert all(answer.structured["abortedRunningTurn"] for answer in ended)
    await witness.ended(first, project, marker=markers[0])
    await witness.ended(second, project, marker=markers[1])


async def test_two_starting_at_once_share_one_opencode(
    bridges: RealBridges, sandbox: Sandbox, project: Path
) -> None:
    """Case B21: one OpenCode for all of them, not one for each window."""
    left, right = await asyncio.gather(bridges.managed(sandbox), bridges.managed_process(sandbox))
    answers = await asyncio.gather(
        left.start("SAY:left", project), right.start("SAY:right", project)
    )

    assert [answer.status for answer in answers] == ["completed", "completed"]
    assert len(opencode_servers_of_home(sandbox.home)) == 1


async def test_the_shared_opencode_stays_while_one_of_them_lives(
    bridges: RealBridges, sandbox: Sandbox, project: Path, markers: tuple[Marker, Marker]
) -> None:
    left, right = await bridges.managed_process(sandbox), await bridges.managed(sandbox)
    await left.start("SAY:left", project)
    session_id = await sleeping(right, project, markers[0])
    await left.close()
    await left.dead()

    await steadily(markers[0].alive, for_s=3, what="the other one's command runs on")
    assert (await right.status(session_id)).status == "running"


async def test_two_with_different_start_settings_end_each_others_sessions(
    bridges: RealBridges,
    sandbox: Sandbox,
    managed_witness: ManagedWitnesses,
    tmp_path: Path,
    markers: tuple[Marker, Marker],
) -> None:
    """Two OpenCodes on one data folder: the one that does not run it would say 404 and "true"."""
    folders = [write_project(tmp_path / name) for name in ("left", "right")]
    left = await bridges.managed(sandbox)
    first = await sleeping(left, folders[0], markers[0])
    right = await bridges.managed(sandbox, SERVE_ARGS="--log-level DEBUG")
    second = await sleeping(right, folders[1], markers[1])
    servers = opencode_servers_of_home(sandbox.home)
    runs_first = await managed_witness.of(sandbox, number=0)
    runs_second = await managed_witness.of(sandbox, number=1)
    busy = (await runs_first.busy(folders[0]), await runs_second.busy(folders[1]))
    ended = await asyncio.gather(left.end(second), right.end(first))

    assert len(servers) == 2
    assert busy == ({first}, {second})
    assert [answer.status for answer in ended] == ["ended", "ended"]
    assert all(answer.structured["abortedRunningTurn"] for answer in ended)
    await runs_first.ended(first, folders[0], marker=markers[0])
    await runs_second.ended(second, folders[1], marker=markers[1])


async def test_a_managed_one_cannot_end_an_attached_ones_session_and_says_so(
    bridges: RealBridges, sandbox: Sandbox, witness: Witness, project: Path
) -> None:
    attached = await bridges.attached()
    managed = await bridges.managed(sandbox, CLEANUP_TIMEOUT_SECONDS="4")
    session_id = await attached.begin(ENDLESS, project)
    await witness.streaming(session_id)
    claimed = await managed.end(session_id)
    listed = await managed.listed()
    status = await managed.status(session_id)
    streamed = witness.streams(session_id)
    refused = await attached.call("opencode-reply", sessionId=session_id, prompt="SAY:no")
    ended = await attached.end(session_id)

    assert (claimed.is_error, claimed.status) == (True, "ending")
    assert claimed.error == "CLEANUP_UNCONFIRMED"
    assert claimed.structured["done"] is False
    assert listed == {session_id: "ending"}
    assert (status.status, status.is_error) == ("ending", False)
    assert streamed, "it runs on, since nobody here can reach it"
    assert refused.error == "SESSION_BUSY", "the accepted end lets no new turn in"
    assert ended.status == "ended"
    await witness.ended(session_id, project)


async def test_a_managed_one_knows_an_attached_ones_session_but_not_what_it_does(
    bridges: RealBridges, sandbox: Sandbox, witness: Witness, project: Path
) -> None:
    attached = await bridges.attached()
    managed = await bridges.managed(sandbox)
    session_id = (await attached.start("SAY:ready", project)).session_id
    status = await managed.status(session_id)
    reply = await managed.call("opencode-reply", sessionId=session_id, prompt="SAY:no")

    assert (status.status, status.is_error) == ("unknown", False)
    assert reply.error == "OPENCODE_UNAVAILABLE"
    assert await witness.user_texts(session_id) == ["SAY:ready"]


async def test_an_attached_one_ends_a_managed_ones_session_in_its_own_opencode(
    bridges: RealBridges,
    sandbox: Sandbox,
    managed_witness: ManagedWitnesses,
    project: Path,
    markers: tuple[Marker, Marker],
) -> None:
    """It finds the way through the instance's file beside the database."""
    managed = await bridges.managed(sandbox)
    attached = await bridges.attached()
    session_id = await sleeping(managed, project, markers[0])
    witness = await managed_witness.of(sandbox)
    ended = await attached.end(session_id)

    assert (ended.status, ended.structured["abortedRunningTurn"]) == ("ended", True)
    await witness.ended(session_id, project, marker=markers[0])
    assert await managed.listed() == {}

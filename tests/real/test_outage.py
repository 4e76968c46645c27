"""OpenCode down, hung, failing now and then, refusing us, killed: each family once.

The interleavings are played on the twin (tests/turns/).
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from tests.real.support.opencode_server import OpencodeServer
from tests.real.support.processes import opencode_servers_of_home
from tests.real.support.sandbox import Sandbox, write_project
from tests.real.support.scripts import ENDLESS, bash
from tests.real.support.witness import Witness
from tests.support.polling import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json, ScriptedModel
    from tests.real.support.bridges import RealBridges
    from tests.real.support.faulty_proxy import FaultyProxy
    from tests.real.support.processes import Marker
    from tests.support.bridge import Bridge

#: `proxied`: one request may take 4 s, an end 8 s; more than that is a limit that does not hold
_ANSWERED_WITHIN_S = 12.0


async def break_down(proxy: FaultyProxy, how: str) -> None:
    """Let OpenCode be down or hung."""
    await (proxy.refuse() if how == "down" else proxy.hang())


@pytest.mark.parametrize("how", ["down", "hung"])
async def test_a_start_says_that_opencode_cannot_be_reached_and_works_later(
    proxied: Bridge, proxy: FaultyProxy, project: Path, how: str
) -> None:
    await break_down(proxy, how)
    began = time.monotonic()
    answer = await proxied.call("opencode", prompt="SAY:x", cwd=str(project))
    took_s = time.monotonic() - began
    await proxy.recover()
    later = await proxied.start("SAY:works", project)

    assert (answer.is_error, answer.error) == (True, "OPENCODE_UNAVAILABLE")
    assert str(proxy.port) in answer.text, "it names the address that was tried"
    assert took_s < _ANSWERED_WITHIN_S
    assert later.status == "completed"


@pytest.mark.parametrize(
    ("how", "action"),
    [
        pytest.param("hung", "delete", id="hung-delete"),
        pytest.param("down", "archive", id="down-archive"),
    ],
)
async def test_an_end_in_an_outage_claims_nothing_and_is_finished_later(  # noqa: PLR0913, PLR0917 - fixtures
    proxied: Bridge, proxy: FaultyProxy, witness: Witness, project: Path, how: str, action: str
) -> None:
    """Case 45: an answer with the reason within the limit; the session stays tracked."""
    session_id = await proxied.begin(ENDLESS, project)
    await witness.streaming(session_id)
    await break_down(proxy, how)
    began = time.monotonic()
    answer = await proxied.end(session_id, action=action)
    took_s = time.monotonic() - began
    listed = await proxied.listed()
    reply = await proxied.call("opencode-reply", sessionId=session_id, prompt="SAY:no")
    existed = await witness.session(session_id)
    streamed = witness.streams(session_id)
    await proxy.recover()
    again = await proxied.end(session_id)

    assert (answer.is_error, answer.error) == (True, "CLEANUP_UNCONFIRMED")
    assert (answer.structured["kind"], answer.status) == ("end", "ending")
    assert (answer.structured["accepted"], answer.structured["done"]) == (True, False)
    assert answer.structured["cleanup"] == "unconfirmed"
    assert "opencode-end" in answer.text
    assert took_s < _ANSWERED_WITHIN_S
    assert listed == {session_id: "ending"}
    assert reply.error == "SESSION_BUSY"
    assert (existed is not None, bool(streamed)) == (True, True), "it really was still running"
    assert (again.status, again.structured["action"]) == ("ended", action)
    await witness.ended(session_id, project, archived=action == "archive")


async def test_a_pending_archive_can_become_a_delete_but_not_the_other_way(
    proxied: Bridge, proxy: FaultyProxy, witness: Witness, project: Path
) -> None:
    session_id = (await proxied.start("SAY:ready", project)).session_id
    await proxy.refuse()
    archive = await proxied.end(session_id, action="archive")
    delete = await proxied.end(session_id, action="delete")
    conflict = await proxied.end(session_id, action="archive")
    await proxy.recover()
    ended = await proxied.end(session_id)

    assert (archive.error, delete.error) == ("CLEANUP_UNCONFIRMED", "CLEANUP_UNCONFIRMED")
    assert conflict.error == "END_CONFLICT"
    assert (ended.status, ended.structured["action"]) == ("ended", "delete")
    await witness.ended(session_id, project)


@pytest.mark.parametrize(
    ("method", "path", "action"),
    [
        pytest.param("DELETE", "^/session/", "delete", id="delete"),
        pytest.param("GET", "^/permission", "archive", id="permissions"),
    ],
)
async def test_any_step_of_an_end_may_fail_twice(  # noqa: PLR0913, PLR0917 - fixtures
    proxied: Bridge,
    proxy: FaultyProxy,
    witness: Witness,
    project: Path,
    method: str,
    path: str,
    action: str,
) -> None:
    session_id = await proxied.begin(ENDLESS, project)
    await witness.streaming(session_id)
    proxy.fail(method, path, times=2)
    ended = await proxied.end(session_id, action=action)

    assert ended.status == "ended"
    assert len([one for one in proxy.requests(method, path) if one.status == 503]) == 2
    await witness.ended(session_id, project, archived=action == "archive")


async def test_a_status_in_an_outage_is_unknown_and_no_error(
    bridges: RealBridges, proxied: Bridge, proxy: FaultyProxy, project: Path
) -> None:
    """A process that saw the turn's end may still say so; one that did not must not guess."""
    session_id = (await proxied.start("SAY:ready", project)).session_id
    fresh = await bridges.attached(SERVER_URL=proxy.url, REQUEST_TIMEOUT_SECONDS="4")
    await proxy.refuse()
    seen = await proxied.status(session_id)
    one = await fresh.status(session_id)
    listed = await proxied.listed()
    await proxy.recover()
    later = await fresh.status(session_id)

    assert seen.status in {"completed", "unknown"}
    assert (one.status, one.is_error) == ("unknown", False)
    assert listed == {session_id: "unknown"}
    assert later.status == "completed"


async def test_a_turn_is_answered_although_the_connection_broke_meanwhile(
    proxied: Bridge, proxy: FaultyProxy, witness: Witness, project: Path
) -> None:
    """The event stream has a gap; what was missed is read."""
    call = asyncio.create_task(proxied.start("SLOW:40\nSAY:all of it", project, wait_seconds=50))
    session_id = await first_session(witness, project)
    await witness.streaming(session_id)
    await proxy.refuse()
    await witness.idle(project)
    await proxy.recover()
    answer = await call

    assert answer.session_id == session_id
    if answer.status == "unknown":
        answer = await proxied.settled(session_id)
    assert answer.status == "completed"
    assert "all of it" in answer.text
    assert await witness.user_texts(session_id) == ["SLOW:40\nSAY:all of it"]


async def first_session(witness: Witness, folder: Path) -> str:
    """Wait until a folder has a session and return its id."""

    async def check() -> list[Json]:
        return await witness.sessions(folder)

    (found,) = await eventually(check, what=f"a session in {folder}")
    return str(found["id"])


@pytest.mark.parametrize("wrong", ["wrong", ""], ids=["wrong-password", "no-password"])
async def test_without_the_right_password_the_settings_are_named(
    bridges: RealBridges, witness: Witness, project: Path, wrong: str
) -> None:
    """Case 26."""
    bridge = await bridges.attached(SERVER_PASSWORD=wrong)
    answer = await bridge.call("opencode", prompt="SAY:x", cwd=str(project))

    assert (answer.is_error, answer.error) == (True, "OPENCODE_UNAUTHORIZED")
    assert "OPENCODE_MCP_SERVER_PASSWORD" in answer.text
    assert await witness.sessions(project) == []


async def test_a_refused_end_is_told_at_once_and_stays_tracked(
    bridges: RealBridges, witness: Witness, project: Path
) -> None:
    bridge = await bridges.attached()
    stranger = await bridges.attached(SERVER_PASSWORD="wrong")
    session_id = await bridge.begin(ENDLESS, project)
    await witness.streaming(session_id)
    refused = await stranger.end(session_id)
    streamed = witness.streams(session_id)
    ended = await bridge.end(session_id)

    assert (refused.is_error, refused.status) == (True, "ending")
    assert streamed
    assert ended.status == "ended"
    await witness.ended(session_id, project)


async def test_an_attached_opencode_that_died_is_neither_replaced_nor_believed_to_have_ended(
    bridges: RealBridges, model: ScriptedModel, tmp_path: Path, project: Path, marker: Marker
) -> None:
    """Case 47; and when it is back, the session that it knew is ended for good."""
    sandbox = Sandbox(tmp_path / "own-home", model.url)
    async with OpencodeServer(sandbox, write_project(tmp_path / "own")) as own:
        bridge = await bridges.attached_process(
            SERVER_URL=own.url,
            SERVER_PASSWORD=own.password,
            REQUEST_TIMEOUT_SECONDS="12",  # the first turn in a folder takes seconds
            CLEANUP_TIMEOUT_SECONDS="8",
        )
        async with Witness(own.url, own.password, model) as witness:
            await witness.create(project)  # its first request in a folder may take seconds
            session_id = await bridge.begin(bash(marker.command), project)
            await witness_busy(witness, session_id, project)
        await own.kill()
        answer = await bridge.end(session_id)
        replaced = opencode_servers_of_home(sandbox.home)
        marker.kill()
        await own.start()

        async def again() -> str | None:  # as the answer says; a busy machine may need two calls
            status = (await bridge.end(session_id)).status
            return None if status == "ending" else status

        ended = await eventually(again, what="the end is confirmed")

        assert (answer.is_error, answer.status) == (True, "ending")
        assert answer.structured.get("abortedRunningTurn") is not True
        assert replaced == []
        assert ended in {"ended", "not_found"}, "by a call, or on our own between two"
        async with Witness(own.url, own.password, model) as witness:
            await witness.ended(session_id, project, marker=marker)


async def test_a_session_goes_on_after_its_attached_opencode_was_restarted(
    bridges: RealBridges, model: ScriptedModel, tmp_path: Path, project: Path
) -> None:
    """OpenCode: nothing resumes after a kill, half a message stays for ever (facts 9.1-9.3)."""
    sandbox = Sandbox(tmp_path / "own-home", model.url)
    async with OpencodeServer(sandbox, write_project(tmp_path / "own")) as own:
        bridge = await bridges.attached(SERVER_URL=own.url, SERVER_PASSWORD=own.password)
        session_id = await bridge.begin(ENDLESS, project)
        async with Witness(own.url, own.password, model) as witness:
            await witness.streaming(session_id)
            await own.kill()
            await own.start()
            status = await bridge.settled(session_id)
            reply = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:on")
            ended = await bridge.end(session_id)

            assert status.status == "failed"
            assert (reply.status, "on" in reply.text) == ("completed", True)
            assert ended.status == "ended"
            await witness.ended(session_id, project)


async def witness_busy(witness: Witness, session_id: str, folder: Path) -> None:
    """Wait until a session is busy."""

    async def check() -> bool:
        return session_id in await witness.busy(folder)

    await eventually(check, what=f"{session_id} is busy")

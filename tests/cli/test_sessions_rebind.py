"""`sessions rebind`: the operator's word, what is seen against it, and what holds afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from opencode_mcp.app.presence import Presence
from opencode_mcp.opencode.locks import FileLock
from opencode_mcp.store.store import Store
from tests.cli.command import Command, database, rows
from tests.support.polling import eventually
from tests.support.victim import Errand, Victim
from tests.twin import Status, Twin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges

DATA_ID = "11111111-2222-3333-4444-555555555555"


@pytest_asyncio.fixture
async def elsewhere(nothing_left: None, tmp_path: Path, twin: Twin) -> AsyncIterator[Twin]:
    """Give the same OpenCode at another address: another server on the twin's data."""
    del nothing_left
    async with Twin(tmp_path, model_speed=20) as other:
        other.world.share(twin.world)
        yield other


def moved_to(command: Command, twin: Twin) -> Command:
    return command.with_settings(SERVER_URL=twin.url)


async def urls(command: Command) -> list[str | None]:
    return [
        row[0]
        for row in await rows(
            command,
            "SELECT url FROM sessions JOIN instances ON instances.id = instance_id ORDER BY 1",
        )
    ]


async def some_sessions(bridges: Bridges, project: Path, count: int = 2) -> list[str]:
    bridge = await bridges.attached()
    ids = [(await bridge.start("SAY:x", project)).session_id for _ in range(count)]
    await bridge.close()
    return ids


async def test_all_sessions_are_moved_and_work_at_the_new_address(
    command: Command, bridges: Bridges, project: Path, twin: Twin, elsewhere: Twin
) -> None:
    first, second = await some_sessions(bridges, project)
    said = await moved_to(command, elsewhere).run(
        "sessions", "rebind", twin.url, elsewhere.url + "/", "--yes"
    )
    assert said.code == 0, said.err
    assert said.out == f"2 sessions moved from {twin.url} to {elsewhere.url}\n"
    assert f"the OpenCode at {elsewhere.url} knows 2 of 2 looked for" in said.err
    await twin.refuse()
    since = len(twin.requests)
    bridge = await bridges.attached(SERVER_URL=elsewhere.url)
    assert await bridge.listed() == {first: "idle", second: "idle"}
    assert (await bridge.status(first)).status == "completed"
    reply = await bridge.call("opencode-reply", sessionId=second, prompt="SAY:again")
    assert reply.status == "completed", reply.text
    assert (await bridge.end(first)).status == "ended"
    assert first not in elsewhere.world.sessions
    assert not twin.lines(since)


async def test_nothing_is_moved_while_a_live_server_runs_a_turn(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    bridge = await bridges.attached()
    idle = (await bridge.start("SAY:x", project)).session_id
    running = await bridge.begin("HANG", project)
    new = "http://127.0.0.1:9"
    said = await command.run("sessions", "rebind", twin.url, new, "--yes", "--force")
    assert (said.code, said.out) == (1, "")
    assert f"at work on {running}: stop the servers" in said.err
    assert idle not in said.err
    assert await urls(command) == [twin.url, twin.url]
    await bridge.call("opencode-cancel", sessionId=running, wait_ms=5000)
    again = await command.run("sessions", "rebind", twin.url, new, "--yes")
    assert again.code == 0, again.err
    assert await urls(command) == [new, new]


async def test_nothing_is_moved_while_a_live_server_works_on_an_end(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    (session_id,) = await some_sessions(bridges, project, 1)
    path = database(command)
    async with Store.open(path) as store:
        with Presence(path.with_name(f"{path.name}.processes")) as other:
            assert await store.take_lease(session_id, other.name, None)
            said = await command.run("sessions", "rebind", twin.url, "http://[::1]:9", "--yes")
        assert (said.code, session_id in said.err) == (1, True)
        assert await urls(command) == [twin.url]
    again = await command.run("sessions", "rebind", twin.url, "http://[::1]:9", "--yes")
    assert again.code == 0, again.err


async def test_a_turn_of_a_dead_process_is_taken_up_at_the_new_address(
    command: Command, bridges: Bridges, project: Path, twin: Twin, elsewhere: Twin
) -> None:
    errand = Errand(env=bridges.attach_env(), folder=project, job="start", prompts=("HANG",))
    victim = Victim(errand)
    session_id = await victim.answer()
    await victim.kill()
    await twin.kill()
    said = await moved_to(command, elsewhere).run(
        "sessions", "rebind", twin.url, elsewhere.url, "--yes"
    )
    assert said.code == 0, said.err
    bridge = await bridges.attached(SERVER_URL=elsewhere.url)
    settled = await bridge.settled(session_id)
    assert settled.status == "failed"  # cut off there: idle without an end
    assert (await bridge.end(session_id)).status == "ended"


async def test_a_pending_end_goes_on_at_the_new_address_at_once(
    command: Command, bridges: Bridges, project: Path, twin: Twin, elsewhere: Twin
) -> None:
    """Ours: also the record that a delete was sent is dropped: it went to another address."""
    ending, _ = await some_sessions(bridges, project)
    twin.fail(Status(500), method="DELETE", times=None)
    await command.with_settings(CLEANUP_TIMEOUT_SECONDS="1").run("sessions", "end", ending)
    sent = "SELECT end_delete_sent, end_next_at IS NULL FROM sessions WHERE phase = 'ending'"
    assert await rows(command, sent) == [(1, 0)]
    said = await command.run("sessions", "rebind", twin.url, elsewhere.url, "--yes")
    assert said.code == 0, said.err
    assert await rows(command, sent) == [(0, 1)]
    bridge = await bridges.attached(SERVER_URL=elsewhere.url)

    async def ended() -> bool:
        return await bridge.is_ended(ending)

    await eventually(ended, what="the end is finished at the new address")
    assert ending not in elsewhere.world.sessions


async def test_an_opencode_that_knows_none_of_them_is_refused_unless_forced(
    command: Command, bridges: Bridges, project: Path, twin: Twin, tmp_path: Path
) -> None:
    await some_sessions(bridges, project)
    async with Twin(tmp_path) as foreign:
        there = moved_to(command, foreign)
        said = await there.run("sessions", "rebind", twin.url, foreign.url, "--yes")
        assert (said.code, said.out) == (1, "")
        assert "knows none of these sessions: other data?" in said.err
        assert await urls(command) == [twin.url, twin.url]
        forced = await there.run("sessions", "rebind", twin.url, foreign.url, "--yes", "--force")
        assert forced.code == 0, forced.err
    assert await urls(command) == [foreign.url, foreign.url]


async def test_an_address_that_is_not_ours_gets_no_password(
    command: Command, bridges: Bridges, project: Path, twin: Twin, elsewhere: Twin
) -> None:
    await some_sessions(bridges, project)
    said = await command.run("sessions", "rebind", twin.url, elsewhere.url, "--yes", "--json")
    assert said.json["sessions"] == 2
    assert said.json["from"]["url"] == twin.url
    assert said.json["to"] | {"id": ""} == {"id": "", "kind": "attach", "url": elsewhere.url}
    assert elsewhere.requests == []
    assert "not looked at" in said.err


async def test_sessions_go_to_the_managed_opencode_on_the_same_data(
    command: Command, bridges: Bridges, project: Path, twin: Twin, tmp_path: Path
) -> None:
    await some_sessions(bridges, project)
    data = tmp_path / "bridge-home" / ".local" / "share" / "opencode"
    data.mkdir(parents=True)
    (data / "opencode-mcp-data-id").write_text(DATA_ID, encoding="ascii")
    refused = await command.run("sessions", "rebind", twin.url, "managed", "--yes")
    assert (refused.code, "something still answers at" in refused.err) == (1, True)
    await twin.refuse()
    said = await command.run("sessions", "rebind", twin.url, "managed", "--yes", "--json")
    assert said.code == 0, said.err
    assert said.json["to"]["kind"] == "managed"
    moved = "SELECT kind, data_id, dead FROM sessions JOIN instances ON instances.id = instance_id"
    assert await rows(command, moved) == [("managed", DATA_ID, 1)] * 2


async def test_sessions_of_a_managed_opencode_that_is_lost_can_be_moved(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    """Contract §1: one that lives in another container, which is gone for good."""
    await some_sessions(bridges, project)
    await rows(command, "INSERT INTO instances (id, kind) VALUES ('0a1b', 'managed')")
    await rows(command, "UPDATE sessions SET instance_id = '0a1b'")
    said = await command.run("sessions", "rebind", "0a1b", twin.url, "--yes")
    assert said.code == 0, said.err
    assert await urls(command) == [twin.url, twin.url]


async def test_a_managed_opencode_that_runs_here_keeps_its_sessions(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    await some_sessions(bridges, project)
    await rows(command, "INSERT INTO instances (id, kind) VALUES ('0a1b', 'managed')")
    await rows(command, "UPDATE sessions SET instance_id = '0a1b'")
    folder = database(command).with_name(f"{database(command).name}.instances")
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "0a1b.json") as lock:
        assert lock.try_exclusive()
        said = await command.run("sessions", "rebind", "0a1b", twin.url, "--yes", "--force")
    assert (said.code, "0a1b runs here" in said.err) == (1, True)


async def test_what_is_not_known_is_told_with_what_is(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    await some_sessions(bridges, project)
    said = await command.run("sessions", "rebind", "http://localhost:1", twin.url, "--yes")
    assert (said.code, said.out) == (3, "")
    assert "no session was ever in an OpenCode 'http://127.0.0.1:1'" in said.err
    assert f"{twin.url} (attach, 2 sessions)" in said.err


@pytest.mark.parametrize(
    ("addresses", "told"),
    [
        (("http://u:hunter2@h", "managed"), "OLD: must hold no user name or password"),
        (("{twin}", "http://u:hunter2@h"), "NEW: must hold no user name or password"),
        (("{twin}", "somewhere"), "or the word managed"),
        (("{twin}", "{twin}/"), "are the same"),
    ],
    ids=["password-in-old", "password-in-new", "no-url", "same"],
)
async def test_addresses_that_are_none_are_refused(
    command: Command, bridge: Bridge, twin: Twin, addresses: tuple[str, str], told: str
) -> None:
    await bridge.start("SAY:x", database(command).parent)
    old, new = (one.format(twin=twin.url) for one in addresses)
    said = await command.run("sessions", "rebind", old, new, "--yes")
    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert "hunter2" not in said.err


async def test_nobody_is_moved_without_a_yes(
    command: Command, bridges: Bridges, project: Path, twin: Twin
) -> None:
    await some_sessions(bridges, project)
    said = await command.process("sessions", "rebind", twin.url, "http://127.0.0.1:9")
    assert (said.code, said.out) == (1, "")
    assert "say --yes where nobody can be asked" in said.err
    assert await urls(command) == [twin.url, twin.url]

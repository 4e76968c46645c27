"""An OpenCode that is not the sessions' own (a copied database), or not one that we can drive."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from opencode_mcp.lifecycle import Phase
from opencode_mcp.opencode.instance_file import InstanceRecord, State, create_locked
from opencode_mcp.records import Instance, InstanceKind, Session
from opencode_mcp.store.store import Store
from tests.opencode.managed_support import eventually, supervisors
from tests.opencode.stand_ins import fake_opencode
from tests.support.bridges import Bridges, bare_env
from tests.support.polling import PATIENCE_S
from tests.turns.reading import nothing_runs, settled_end, streaming
from tests.twin import Twin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.bridge import Bridge

#: serves health and nothing else; what it prints and says comes before it
_SERVES = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = HEALTH if self.path == "/global/health" else b"<html>"
        kind = "application/json" if body is HEALTH else "text/html"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)
port = int(sys.argv[sys.argv.index("--port") + 1])
server = http.server.HTTPServer(("127.0.0.1", port), Handler)
print(READY.format(port=port), flush=True)
server.serve_forever()
"""
_OURS = """
READY = "opencode server listening on http://127.0.0.1:{port}"
HEALTH = b'{"healthy": true, "version": "1.18.33"}'
"""
_OF_2_X = """
READY = "server listening on http://127.0.0.1:{port}\\nserver password hunter2hunter2"
HEALTH = b"<html>"
"""


#: what an end says of a session that is ended now, or was a moment ago
_OVER = {"ended", "not_found"}


@pytest_asyncio.fixture
async def managed(tmp_path: Path, bridges: Bridges) -> AsyncIterator[Managed]:
    """Give a way to open our server on a stand-in for `opencode`, all ended after the test."""
    made = Managed(tmp_path, bridges)
    yield made
    await made.stack.aclose()
    folders = [tmp_path / f"{bridges.database.name}.instances"]
    await eventually(lambda: not any(supervisors(it) for it in folders), "supervisors are gone")


class Managed:
    def __init__(self, folder: Path, bridges: Bridges) -> None:
        self.stack = AsyncExitStack()
        self.home = folder / "home"
        self._folder = folder
        self._bridges = bridges

    async def open(self, program: str) -> Bridge:
        """Open a server whose `opencode` is this program; it is closed with `stack`."""
        binary = fake_opencode(self._folder / "opencode", program + _SERVES)
        env = bare_env(self.home) | self._bridges.settings({"OPENCODE_BIN": binary})
        bridge = await self._bridges.open(env)
        self.stack.push_async_callback(bridge.close)
        return bridge


def copy_of(database: Path) -> Path:
    """Return a copy, made while it is in use; its prompts are older than a moment, as they are."""
    copy = database.with_name("copy.db")
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{database}{suffix}", f"{copy}{suffix}")
    with closing(sqlite3.connect(copy)) as file, file:
        file.execute("UPDATE turns SET created_at = '2026-01-01T00:00:00.000000+00:00'")
    return copy


async def test_a_database_beside_another_opencode_ends_nothing_and_the_true_one_finishes(
    bridge: Bridge, bridges: Bridges, twin: Twin, tmp_path: Path, project: Path
) -> None:
    """Contract §2.3, step 7: as in a container, where the same address is another OpenCode."""
    running = await bridge.begin("HANG", project)
    await streaming(twin)
    idle = [(await bridge.start("SAY:x", project)).session_id for _ in range(2)]
    copy = copy_of(bridges.database)
    await twin.refuse()
    port = urlsplit(twin.url).port or 0
    async with Twin(tmp_path, port=port) as other:
        copied = await bridges.attached(DATABASE=str(copy))
        ends = {
            running: await copied.end(running),
            idle[0]: await copied.end(idle[0], action="archive"),
        }
        again = await copied.end(running)
        statuses = {one: await copied.status(one) for one in (*ends, idle[1])}
        cancelled = await copied.call("opencode-cancel", sessionId=idle[1], wait_ms=0)
        sent = [line.partition(" ")[0] for line in other.lines()]
    listed = await copied.listed()
    await twin.listen()

    for answer in (*ends.values(), again):
        assert (answer.status, answer.error) == ("ending", "CLEANUP_UNCONFIRMED")
        assert answer.structured["done"] is False
        assert "this OpenCode knows none of our sessions: other data?" in answer.text
    assert set(sent) <= {"GET", "POST"}, "neither deleted nor archived"
    assert statuses[running].status == "ending"
    assert "other data?" in statuses[running].structured["ending"]["lastError"]
    assert (statuses[idle[1]].status, statuses[idle[1]].is_error) == ("unknown", False)
    assert "other data?" in statuses[idle[1]].text
    assert cancelled.structured["done"] is False
    assert set(listed) == {running, *idle}
    assert set(twin.world.sessions) == {running, *idle}
    for one in (running, idle[0]):  # here, or in the background
        assert (await settled_end(copied, one, within_s=PATIENCE_S)).status in _OVER
    assert set(await copied.listed()) == {idle[1]}
    assert set(twin.world.sessions) == {idle[0], idle[1]}, "one is archived"


async def test_a_turn_of_another_opencode_is_not_taken_for_over(
    bridge: Bridge, bridges: Bridges, twin: Twin, tmp_path: Path, project: Path
) -> None:
    """It runs on where it is: a copy must neither say that it stopped nor write it down."""
    running = await bridge.begin("HANG", project)
    await streaming(twin)
    copy = copy_of(bridges.database)
    await twin.refuse()
    async with Twin(tmp_path, port=urlsplit(twin.url).port or 0):
        copied = await bridges.attached(DATABASE=str(copy))
        looks = [await copied.status(running)]
        looks.append(await copied.call("opencode-cancel", sessionId=running))
        looks.append(await copied.status(running))
        async with Store.open(copy) as store:
            turn = await store.turn(running, 1)
    await twin.listen()
    settled = await copied.settled(running)

    assert [look.status for look in looks] == ["unknown", "stopping", "unknown"]
    assert looks[1].structured["cancelled"] is None
    assert turn
    assert turn.finished_at is None
    assert settled.status == "cancelled", "the wish was kept until its own OpenCode was there"
    await nothing_runs(twin)


@pytest.mark.parametrize("with_records", [True, False], ids=["with-records", "without"])
async def test_a_copied_database_of_a_managed_opencode_ends_nothing(
    bridges: Bridges, managed: Managed, tmp_path: Path, *, with_records: bool
) -> None:
    """With the instances' files copied too, the old one is provably dead; its data is elsewhere."""
    instance = Instance("a" * 32, InstanceKind.MANAGED, None, "key", "the data of another home")
    moment = datetime.now(UTC)
    session = Session(
        id="ses_copied",
        owner="local",
        instance_id=instance.id,
        directory=str(tmp_path),
        phase=Phase.ACTIVE,
        version=1,
        created_at=moment,
        updated_at=moment,
    )
    async with Store.open(bridges.database) as store:
        await store.put_instance(instance)
        await store.track("none", session, None)
    if with_records:
        folder = tmp_path / f"{bridges.database.name}.instances"
        folder.mkdir(mode=0o700)
        # as a copy of the files is: nobody holds its lock
        os.close(create_locked(folder, InstanceRecord(instance.id, "key", State.GONE)))
    bridge = await managed.open(_OURS)
    ended = await bridge.end(session.id)
    status = await bridge.status(session.id)

    assert (ended.status, ended.error) == ("ending", "CLEANUP_UNCONFIRMED")
    why = "does not serve its data" if with_records else "cannot be seen from here"
    assert why in ended.text
    assert status.status == "ending"
    assert await bridge.listed() == {session.id: "ending"}


async def test_a_managed_opencode_of_another_generation_is_told_with_the_ones_we_drive(
    managed: Managed, project: Path
) -> None:
    """Case 27: long before the start's time (a minute) is up."""
    bridge = await managed.open(_OF_2_X)
    async with asyncio.timeout(30):
        answer = await bridge.call("opencode", prompt="SAY:x", cwd=str(project))

    assert (answer.is_error, answer.error) == (True, "OPENCODE_UNSUPPORTED")
    assert "1.18" in answer.text
    assert "hunter2" not in answer.text
    assert answer.structured["resendSafety"] == "not_submitted"
    assert await bridge.listed() == {}

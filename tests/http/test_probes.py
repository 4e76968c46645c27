"""`/healthz`: is the process alive. `/readyz`: can it do its work, and if not, which part."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.bridges import bare_env
from tests.support.disk import Disk
from tests.support.http_bridge import run_http
from tests.support.polling import eventually
from tests.twin import Hang

if TYPE_CHECKING:
    from tests.support.bridges import Bridges
    from tests.support.http_bridge import HttpServer
    from tests.twin import Twin


async def _becomes(server: HttpServer, words: dict[str, str]) -> None:
    async def check() -> bool:
        return bool((await server.get("/readyz")).json == words)

    await eventually(check, what=f"/readyz says {words}")


async def test_ready_means_that_database_and_opencode_answer(bridges: Bridges, twin: Twin) -> None:
    server = await bridges.http()
    reply = await server.get("/readyz")
    assert reply.status == 200
    assert reply.json == {"status": "ok", "database": "ok", "opencode": "ok"}
    assert twin.requests, "OpenCode was asked"


async def test_an_opencode_that_is_gone_makes_it_unready_and_no_more(
    bridges: Bridges, twin: Twin
) -> None:
    """Case 35: neither probe tells where OpenCode is."""
    server = await bridges.http(REQUEST_TIMEOUT_SECONDS="1")
    await twin.refuse()
    await _becomes(server, {"status": "not ready", "database": "ok", "opencode": "unavailable"})
    assert (await server.get("/healthz")).json == {"status": "ok"}
    reply = await server.get("/readyz")
    assert reply.status == 503
    assert twin.url not in reply.text
    await twin.listen()
    await _becomes(server, {"status": "ok", "database": "ok", "opencode": "ok"})


async def test_an_opencode_that_hangs_does_not_keep_the_probe_waiting(
    bridges: Bridges, twin: Twin
) -> None:
    server = await bridges.http()
    twin.fail(Hang(), path="/global/health", times=100)
    since = len(twin.requests)
    for _ in range(3):
        reply = await server.get("/readyz")
        assert reply.status == 503
        assert reply.json["opencode"] == "no answer yet"
    asked = twin.lines(since)
    assert len(asked) == 1, "one look for all probes that wait"


async def test_a_database_that_was_taken_away_makes_it_unready(bridges: Bridges) -> None:
    server = await bridges.http()
    bridges.database.rename(bridges.database.with_suffix(".away"))
    reply = await server.get("/readyz")
    assert reply.status == 503
    assert reply.json == {"status": "not ready", "database": "unusable", "opencode": "unknown"}
    bridges.database.with_suffix(".away").rename(bridges.database)
    await _becomes(server, {"status": "ok", "database": "ok", "opencode": "ok"})


async def test_a_full_disk_makes_it_unready_though_it_can_be_read(bridges: Bridges) -> None:
    with Disk() as disk:
        server = await bridges.http()
        await _becomes(server, {"status": "ok", "database": "ok", "opencode": "ok"})
        disk.room = 0
        full = {"status": "not ready", "database": "unusable", "opencode": "ok"}
        await _becomes(server, full)
        disk.room = None
        await _becomes(server, {"status": "ok", "database": "ok", "opencode": "ok"})


async def test_an_opencode_that_is_slower_than_its_probe_is_ready_to_the_next_ones(
    bridges: Bridges, twin: Twin
) -> None:
    server = await bridges.http()
    slow = twin.fail(Hang(), path="/global/health")
    assert (await server.get("/readyz")).json["opencode"] == "no answer yet"
    slow.release()
    await asyncio.sleep(1.5)  # what is looked for is that a probe comes later than the answer
    later = twin.fail(Hang(), path="/global/health")
    assert (await server.get("/readyz")).json["opencode"] == "ok"
    later.release()


async def test_many_probes_look_once(bridges: Bridges, twin: Twin) -> None:
    """Ours: they are anybody's to send, and must not cost more than one."""
    server = await bridges.http()
    await _becomes(server, {"status": "ok", "database": "ok", "opencode": "ok"})
    since = len(twin.requests)
    await asyncio.gather(*(server.get("/readyz") for _ in range(30)))
    assert len(twin.lines(since)) <= 1


async def test_probes_in_a_row_look_once_a_second(bridges: Bridges, twin: Twin) -> None:
    server = await bridges.http()
    await _becomes(server, {"status": "ok", "database": "ok", "opencode": "ok"})
    since, began = len(twin.requests), time.monotonic()
    for _ in range(20):
        assert (await server.get("/readyz")).status == 200
    assert len(twin.lines(since)) <= 1 + (time.monotonic() - began)


async def test_a_managed_opencode_that_cannot_be_started_is_told_and_ends_nothing(
    bridges: Bridges, tmp_path: Path
) -> None:
    Path(f"{bridges.database}.instances").write_text("in the way", encoding="utf-8")
    env = bridges.settings({"MODE": "managed", "OPENCODE_BIN": "/bin/true"})
    async with run_http(bare_env(tmp_path / "home") | env, tmp_path, name="managed") as server:
        await _becomes(server, {"status": "not ready", "database": "ok", "opencode": "unavailable"})
        answer = await (await server.caller()).call("opencode", prompt="x")
        assert answer.error == "OPENCODE_UNAVAILABLE"
        assert f"{bridges.database}.instances" in answer.text
        server.signal(signal.SIGTERM)
        assert await server.exit_code() == 0
    assert "Traceback" not in server.log.read_text(encoding="utf-8")

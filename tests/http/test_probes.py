"""`/healthz`: is the process alive. `/readyz`: can it do its work, and if not, which part."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    assert (await server.get("/readyz")).status == 200

"""The one door to HTTP: what is tried again, by kind of call, and for how long."""

from __future__ import annotations

import asyncio
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.opencode.answers import retry_after_s
from opencode_mcp.opencode_errors import OpencodeTimeoutError, OpencodeUnavailableError
from tests.opencode.fake_server import (
    FakeServer,
    QuickClock,
    cuts,
    drips,
    floods,
    free_port,
    hangs,
    resets,
    says,
    says_nothing,
    shows_the_web_app,
)
from tests.opencode.http_support import (
    CHANGE,
    NAMED,
    READ,
    SUBMISSION,
    failure,
    http_client,
    unavailable,
)

if TYPE_CHECKING:
    from opencode_mcp.opencode.calls import Call
    from opencode_mcp.opencode.http import Http
    from tests.opencode.fake_server import Behaviour

# --- what is tried again, by kind of call ---


@pytest.mark.parametrize("call", [READ, CHANGE], ids=["read", "change"])
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(unavailable, id="503"),
        pytest.param(says_nothing(429), id="429"),
        pytest.param(says_nothing(500), id="500"),
        pytest.param(cuts, id="cut-body"),
    ],
)
async def test_a_read_or_a_change_gets_over_two_failures(
    server: FakeServer, http: Http, clock: QuickClock, call: Call, fault: Behaviour
) -> None:
    server.script(fault, fault, says({"good": True}))
    assert (await http.send(call, timeout_s=None)).body == b'{"good": true}'
    assert len(clock.slept) == 2
    assert 0 < clock.slept[0] < clock.slept[1]


async def test_a_change_is_sent_again_after_a_reset(server: FakeServer, http: Http) -> None:
    server.script(resets, says({}))
    await http.send(CHANGE, timeout_s=None)
    assert server.count("POST") == 2


async def test_three_tries_are_the_most(server: FakeServer, http: Http, clock: QuickClock) -> None:
    server.script(unavailable)
    error = await failure(http, CHANGE)
    assert isinstance(error, OpencodeUnavailableError)
    assert error.outcome_unknown
    assert (server.count("POST"), len(clock.slept)) == (3, 2)


@pytest.mark.parametrize("status", [400, 401, 404, 409])
async def test_a_refusal_is_not_tried_again(server: FakeServer, http: Http, status: int) -> None:
    server.script(says(NAMED, status))
    error = await failure(http, CHANGE)
    assert not error.outcome_unknown
    assert server.count("POST") == 1


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(resets, id="reset"),
        pytest.param(cuts, id="cut-body"),
        pytest.param(unavailable, id="503"),
        pytest.param(says_nothing(500), id="500"),
        pytest.param(shows_the_web_app, id="web-app"),
        pytest.param(floods, id="too-large"),
    ],
)
async def test_a_submission_that_left_is_never_sent_again_and_its_outcome_is_unknown(
    server: FakeServer, http: Http, clock: QuickClock, fault: Behaviour
) -> None:
    server.script(fault, says({}))
    error = await failure(http, SUBMISSION)
    assert error.outcome_unknown
    assert (server.count("POST"), clock.slept) == (1, [])


@pytest.mark.parametrize("status", [302, 400, 401, 404, 429])
async def test_a_refused_submission_provably_had_no_effect(
    server: FakeServer, http: Http, status: int
) -> None:
    server.script(says_nothing(status))
    error = await failure(http, SUBMISSION)
    assert not error.outcome_unknown
    assert server.count("POST") == 1


async def test_a_submission_is_never_sent_again_when_an_idle_connection_breaks_under_it(
    server: FakeServer, http: Http
) -> None:
    await http.send(READ, timeout_s=None)  # leaves a connection that the submission will use
    server.script(resets, says({}))
    error = await failure(http, SUBMISSION)
    assert error.outcome_unknown
    assert server.count("POST") == 1


class LateServerClock(QuickClock):
    """Starts a server while the client pauses between two tries."""

    def __init__(self, server: FakeServer) -> None:
        super().__init__()
        self._server = server

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        await self._server.__aenter__()


@pytest.mark.parametrize("call", [READ, CHANGE, SUBMISSION], ids=["read", "change", "submission"])
async def test_a_refused_connection_is_tried_again_whatever_the_call(call: Call) -> None:
    server = FakeServer(free_port())
    clock = LateServerClock(server)
    try:
        async with http_client(server.url, clock) as http:
            await http.send(call, timeout_s=None)
    finally:
        await server.__aexit__(None, None, None)
    assert (len(server.seen), len(clock.slept)) == (1, 1)


async def test_a_submission_that_never_connects_provably_had_no_effect(clock: QuickClock) -> None:
    async with http_client(f"http://127.0.0.1:{free_port()}", clock) as http:
        error = await failure(http, SUBMISSION)
    assert isinstance(error, OpencodeUnavailableError)
    assert not error.outcome_unknown
    assert len(clock.slept) == 2


async def test_a_host_name_that_does_not_exist_is_unavailable(clock: QuickClock) -> None:
    async with http_client("http://opencode.invalid:1", clock) as http:
        assert isinstance(await failure(http, READ), OpencodeUnavailableError)


async def test_retry_after_is_the_least_pause(
    server: FakeServer, http: Http, clock: QuickClock
) -> None:
    server.script(says_nothing(429, {"Retry-After": "3"}), says({}))
    await http.send(READ, timeout_s=None)
    assert clock.slept == [3.0]


async def test_a_retry_after_beyond_the_budget_is_not_waited_for(
    server: FakeServer, http: Http, clock: QuickClock
) -> None:
    server.script(says_nothing(503, {"Retry-After": "30"}), says({}))
    error = await failure(http, READ)
    assert error.retry_after_s == 30.0
    assert (len(server.seen), clock.slept) == (1, [])


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, None), ("7", 7.0), ("soon", None), ("-1", None), ("1e9", None), ("", None)],
)
def test_retry_after_in_seconds(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value, datetime.now(UTC)) == seconds


def test_retry_after_as_a_date_counts_from_now_and_never_below_zero() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert retry_after_s(format_datetime(now + timedelta(seconds=9), usegmt=True), now) == 9.0
    assert retry_after_s(format_datetime(now - timedelta(days=1), usegmt=True), now) == 0.0


# --- time ---


@pytest.mark.parametrize("rude", [hangs, drips])
@pytest.mark.parametrize(("call", "unknown"), [(READ, False), (CHANGE, True), (SUBMISSION, True)])
async def test_a_peer_that_does_not_finish_is_left_in_time(
    server: FakeServer, http: Http, rude: Behaviour, call: Call, *, unknown: bool
) -> None:
    server.script(rude)
    async with asyncio.timeout(5):
        error = await failure(http, call, timeout_s=0.3)
    assert isinstance(error, OpencodeTimeoutError)
    assert error.outcome_unknown is unknown
    assert server.reached.is_set()


async def test_the_clients_own_limit_stands_when_the_call_allows_more(server: FakeServer) -> None:
    server.script(hangs)
    async with asyncio.timeout(5), http_client(server.url, QuickClock(), limit_s=0.1) as http:
        assert isinstance(await failure(http, READ, timeout_s=60), OpencodeTimeoutError)


async def test_the_limit_covers_all_tries_together(
    server: FakeServer, http: Http, clock: QuickClock
) -> None:
    server.script(unavailable)
    await failure(http, READ, timeout_s=0.15)
    assert sum(clock.slept) < 0.15
    assert len(server.seen) < 3


async def test_a_submission_that_cannot_connect_in_time_provably_had_no_effect() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)  # room for one; Linux ignores who comes next instead of refusing
        port = full.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            async with http_client(f"http://127.0.0.1:{port}", QuickClock()) as http:
                error = await failure(http, SUBMISSION, timeout_s=1.0)
    assert isinstance(error, OpencodeTimeoutError)
    assert not error.outcome_unknown


async def test_a_cancelled_call_is_cancelled_and_not_an_error(
    server: FakeServer, http: Http
) -> None:
    server.script(hangs)
    task = asyncio.create_task(http.send(READ, timeout_s=None))
    async with asyncio.timeout(5):
        await server.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

"""The one door to HTTP: what is sent, what is tried again, and which error comes of what."""

from __future__ import annotations

import asyncio
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING

import pytest
from pydantic import TypeAdapter

from opencode_mcp.opencode.answers import retry_after_s
from opencode_mcp.opencode.calls import Call, CallKind, segment
from opencode_mcp.opencode.http import Http
from opencode_mcp.opencode_errors import (
    OpencodeError,
    OpencodeFailedError,
    OpencodeNotFoundError,
    OpencodeOverloadedError,
    OpencodeProtocolError,
    OpencodeRefusedError,
    OpencodeTimeoutError,
    OpencodeUnauthorizedError,
    OpencodeUnavailableError,
    ResponseTooLargeError,
)
from tests.opencode.fake_server import (
    FakeServer,
    QuickClock,
    boasts,
    cuts,
    drips,
    floods,
    free_port,
    hangs,
    resets,
    says,
    says_nothing,
    says_raw,
    shows_the_web_app,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.opencode.fake_server import Behaviour

READ = Call(CallKind.READ, "GET", "/thing")
CHANGE = Call(CallKind.CHANGE, "POST", "/thing", body=b"{}")
SUBMISSION = Call(CallKind.SUBMISSION, "POST", "/thing", body=b"{}")

SECRET = "sesame-7f3a"

unavailable = says_nothing(503)


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as running:
        yield running


@pytest.fixture
def clock() -> QuickClock:
    return QuickClock()


@pytest.fixture
async def http(server: FakeServer, clock: QuickClock) -> AsyncIterator[Http]:
    async with client(server.url, clock) as opened:
        yield opened


def client(url: str, clock: QuickClock, *, limit_s: float = 10.0) -> Http:
    return Http(url, username="opencode", password=SECRET, limit_s=limit_s, clock=clock)


async def failure(http: Http, call: Call, timeout_s: float | None = None) -> OpencodeError:
    with pytest.raises(OpencodeError) as caught:
        await http.send(call, timeout_s=timeout_s)
    return caught.value


# --- which error comes of which answer (facts 8.1, 8.3) ---

NAMED = {"name": "SomeError", "data": {"message": f"upstream says {SECRET}"}}
TAGGED = {"_tag": "SomeError", "message": f"upstream says {SECRET}"}


@pytest.mark.parametrize(
    ("behaviour", "kind", "status"),
    [
        pytest.param(says_nothing(401), OpencodeUnauthorizedError, 401, id="empty-401"),
        pytest.param(says(NAMED, 403), OpencodeUnauthorizedError, 403, id="named-403"),
        pytest.param(says(NAMED, 404), OpencodeNotFoundError, 404, id="named-404"),
        pytest.param(says(TAGGED, 404), OpencodeNotFoundError, 404, id="tagged-404"),
        pytest.param(
            says_raw(b"<h1>Not Found</h1>", "text/html", 404),
            OpencodeProtocolError,
            404,
            id="html-404-of-a-proxy",
        ),
        pytest.param(says_nothing(404), OpencodeProtocolError, 404, id="empty-404"),
        pytest.param(
            says({"detail": "no such route"}, 404),
            OpencodeProtocolError,
            404,
            id="json-404-of-another-program",
        ),
        pytest.param(says(NAMED, 400), OpencodeRefusedError, 400, id="named-400"),
        pytest.param(says(TAGGED, 409), OpencodeRefusedError, 409, id="tagged-409"),
        pytest.param(says_nothing(418), OpencodeRefusedError, 418, id="any-other-4xx"),
        pytest.param(says_nothing(429), OpencodeOverloadedError, 429, id="429"),
        pytest.param(says(NAMED, 500), OpencodeFailedError, 500, id="named-500"),
        pytest.param(says_nothing(501), OpencodeFailedError, 501, id="any-other-5xx"),
        pytest.param(says_nothing(502), OpencodeUnavailableError, 502, id="502"),
        pytest.param(unavailable, OpencodeUnavailableError, 503, id="503"),
        pytest.param(says_nothing(504), OpencodeUnavailableError, 504, id="504"),
        pytest.param(shows_the_web_app, OpencodeProtocolError, 200, id="web-app"),
        pytest.param(says_nothing(204), OpencodeProtocolError, 204, id="empty-where-json-is-due"),
        pytest.param(
            says_nothing(302, {"Location": "/elsewhere"}), OpencodeProtocolError, 302, id="redirect"
        ),
    ],
)
async def test_an_answer_that_is_no_success_becomes_the_error_for_it(
    server: FakeServer, http: Http, behaviour: Behaviour, kind: type[OpencodeError], status: int
) -> None:
    server.script(behaviour)
    error = await failure(http, READ)
    assert type(error) is kind
    assert (error.method, error.path, error.status) == ("GET", "/thing", status)
    assert SECRET not in str(error)


async def test_an_error_text_names_the_call_the_status_and_the_name_opencode_gave(
    server: FakeServer, http: Http
) -> None:
    server.script(says(NAMED, 400))
    assert str(await failure(http, READ)) == "GET /thing: 400 SomeError"


async def test_a_name_that_is_no_word_is_content_and_stays_out_of_the_text(
    server: FakeServer, http: Http
) -> None:
    server.script(says({"name": f"Error: {SECRET}"}, 400))
    assert str(await failure(http, READ)) == "GET /thing: 400"


async def test_an_endless_error_body_is_not_read_to_its_end(server: FakeServer, http: Http) -> None:
    server.script(says({"name": "Big", "data": "x" * 100_000}, 400))
    assert str(await failure(http, READ)) == "GET /thing: 400"


async def test_a_redirect_is_not_followed(server: FakeServer, http: Http) -> None:
    server.script(says_nothing(307, {"Location": "/elsewhere"}), says({}))
    await failure(http, CHANGE)
    assert [one.target for one in server.seen] == ["/thing"]


@pytest.mark.parametrize("body", [b"", b'{"a":', b"\xff", b'{"a": 1} trailing'])
async def test_json_that_is_cut_or_broken_is_a_protocol_error(
    server: FakeServer, http: Http, body: bytes
) -> None:
    server.script(says_raw(body, "application/json"))
    with pytest.raises(OpencodeProtocolError):
        await http.read(READ, TypeAdapter(dict[str, int]), timeout_s=None)


async def test_json_of_another_shape_is_a_protocol_error_that_does_not_quote_it(
    server: FakeServer, http: Http
) -> None:
    server.script(says([{SECRET: SECRET}]))
    with pytest.raises(OpencodeProtocolError) as caught:
        await http.read(READ, TypeAdapter(list[dict[str, int]]), timeout_s=None)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_an_unreadable_success_of_a_submission_is_an_unknown_outcome(
    server: FakeServer, http: Http
) -> None:
    server.script(says_raw(b"{", "application/json"))
    with pytest.raises(OpencodeProtocolError) as caught:
        await http.read(SUBMISSION, TypeAdapter(dict[str, int]), timeout_s=None)
    assert caught.value.outcome_unknown


# --- what is sent ---


async def test_the_password_goes_into_a_basic_auth_header(server: FakeServer, http: Http) -> None:
    await http.send(READ, timeout_s=None)
    assert server.seen[0].headers["Authorization"] == "Basic b3BlbmNvZGU6c2VzYW1lLTdmM2E="


async def test_without_a_password_no_credentials_are_sent(server: FakeServer) -> None:
    http = Http(server.url, username="opencode", password=None, limit_s=5, clock=QuickClock())
    async with http:
        await http.send(READ, timeout_s=None)
    assert "Authorization" not in server.seen[0].headers


@pytest.mark.parametrize(
    ("identifier", "target"),
    [
        ("ses_1", "/session/ses_1"),
        ("x/../ses_other", "/session/x%2F..%2Fses_other"),
        ("ses_a?directory=/", "/session/ses_a%3Fdirectory%3D%2F"),
        ("ses_a#x", "/session/ses_a%23x"),
        ("ses_a%2F..", "/session/ses_a%252F.."),
        ("ses_\\..\\b", "/session/ses_%5C..%5Cb"),
        ("ses_ü\r\nX: y", "/session/ses_%C3%BC%0D%0AX%3A%20y"),
    ],
)
async def test_an_id_stays_one_segment_of_the_path(
    server: FakeServer, http: Http, identifier: str, target: str
) -> None:
    await http.send(Call(CallKind.READ, "GET", f"/session/{segment(identifier)}"), timeout_s=None)
    assert server.seen[0].target == target


@pytest.mark.parametrize("identifier", ["", ".", ".."])
def test_what_no_quoting_keeps_in_its_place_is_refused_as_an_id(identifier: str) -> None:
    with pytest.raises(OpencodeRefusedError):
        segment(identifier)


async def test_a_query_is_quoted_whole(server: FakeServer, http: Http) -> None:
    query = {"directory": "/a b/c&d=e/ü+%"}
    await http.send(Call(CallKind.READ, "GET", "/path", query), timeout_s=None)
    assert server.seen[0].target == "/path?directory=%2Fa%20b%2Fc%26d%3De%2F%C3%BC%2B%25"


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
        async with client(server.url, clock) as http:
            await http.send(call, timeout_s=None)
    finally:
        await server.__aexit__(None, None, None)
    assert (len(server.seen), len(clock.slept)) == (1, 1)


async def test_a_submission_that_never_connects_provably_had_no_effect(clock: QuickClock) -> None:
    async with client(f"http://127.0.0.1:{free_port()}", clock) as http:
        error = await failure(http, SUBMISSION)
    assert isinstance(error, OpencodeUnavailableError)
    assert not error.outcome_unknown
    assert len(clock.slept) == 2


async def test_a_host_name_that_does_not_exist_is_unavailable(clock: QuickClock) -> None:
    async with client("http://opencode.invalid:1", clock) as http:
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
    async with asyncio.timeout(5), client(server.url, QuickClock(), limit_s=0.1) as http:
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
            async with client(f"http://127.0.0.1:{port}", QuickClock()) as http:
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


# --- size ---


async def test_a_declared_body_that_is_too_large_is_not_waited_for(
    server: FakeServer, http: Http
) -> None:
    server.script(boasts, says({}))
    async with asyncio.timeout(5):
        assert isinstance(await failure(http, READ), ResponseTooLargeError)
        await http.send(READ, timeout_s=None)


async def test_a_body_of_unknown_length_is_read_only_to_the_limit(
    server: FakeServer, http: Http
) -> None:
    server.script(floods)
    assert isinstance(await failure(http, READ), ResponseTooLargeError)
    assert len(server.seen) == 1


async def test_a_body_of_exactly_the_limit_is_taken(server: FakeServer, http: Http) -> None:
    server.script(says("x" * 998))
    exact = Call(CallKind.READ, "GET", "/thing", max_bytes=1000)
    assert len((await http.send(exact, timeout_s=None)).body) == 1000


# --- use ---


async def test_a_hanging_call_does_not_hold_up_the_next_one(server: FakeServer, http: Http) -> None:
    server.script(hangs, says({}))
    async with asyncio.timeout(5):
        task = asyncio.create_task(http.send(READ, timeout_s=None))
        await server.reached.wait()
        await http.send(READ, timeout_s=None)
        task.cancel()
        await asyncio.wait({task})


async def test_use_outside_the_context_is_a_bug_that_shows_at_once() -> None:
    with pytest.raises(RuntimeError):
        await client("http://127.0.0.1:1", QuickClock()).send(READ, timeout_s=None)

"""The one door to HTTP: what is sent, how much is read, and which error comes of what."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from pydantic import TypeAdapter

from opencode_mcp.opencode.calls import Call, CallKind, segment
from opencode_mcp.opencode.http import Http
from opencode_mcp.opencode_errors import (
    OpencodeError,
    OpencodeFailedError,
    OpencodeNotFoundError,
    OpencodeOverloadedError,
    OpencodeProtocolError,
    OpencodeRefusedError,
    OpencodeUnauthorizedError,
    OpencodeUnavailableError,
    ResponseTooLargeError,
)
from tests.opencode.fake_server import (
    QuickClock,
    boasts,
    floods,
    hangs,
    says,
    says_nothing,
    says_raw,
    shows_the_web_app,
)
from tests.opencode.http_support import (
    CHANGE,
    NAMED,
    READ,
    SECRET,
    SUBMISSION,
    failure,
    http_client,
    unavailable,
)

if TYPE_CHECKING:
    from tests.opencode.fake_server import Behaviour, FakeServer

# --- which error comes of which answer (facts 8.1, 8.3) ---

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
        await http_client("http://127.0.0.1:1", QuickClock()).send(READ, timeout_s=None)

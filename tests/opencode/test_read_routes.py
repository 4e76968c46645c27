"""Each route that reads: what is sent, and what is made of a real answer (OpenCode 1.18.33)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.opencode_errors import (
    OpencodeError,
    OpencodeNotFoundError,
    OpencodeUnauthorizedError,
    OpencodeUnsupportedError,
)
from tests.opencode.client_support import NOT_FOUND, SESSION
from tests.opencode.fake_server import floods, says, says_nothing, shows_the_web_app

if TYPE_CHECKING:
    from tests.opencode.client_support import Use
    from tests.opencode.fake_server import Behaviour, FakeServer

MESSAGE: dict[str, Any] = {
    "info": {
        "id": "msg_1",
        "parentID": "msg_0",
        "role": "assistant",
        "sessionID": "ses_1",
        "time": {"created": 1795961764655, "completed": 1795961764999},
        "finish": "stop",
    },
    "parts": [{"id": "prt_1", "type": "text", "text": "hello"}],
}
PERMISSION = {
    "id": "per_1",
    "sessionID": "ses_1",
    "permission": "bash",
    "patterns": ["echo hi"],
    "metadata": {"command": "echo hi"},
    "always": ["echo *"],
}
QUESTION = {
    "id": "que_1",
    "sessionID": "ses_1",
    "questions": [{"question": "q?", "header": "h", "options": [{"label": "a"}]}],
}


@pytest.mark.parametrize(
    ("use", "answer", "target"),
    [
        pytest.param(
            lambda c: c.health(),
            {"healthy": True, "version": "1.18.33"},
            "/global/health",
            id="health",
        ),
        pytest.param(lambda c: c.paths(), {"directory": "/p"}, "/path", id="paths"),
        pytest.param(
            lambda c: c.paths("/p"), {"directory": "/p"}, "/path?directory=%2Fp", id="paths-of"
        ),
        pytest.param(lambda c: c.session("ses_1"), SESSION, "/session/ses_1", id="session"),
        pytest.param(
            lambda c: c.sessions("/p"),
            [SESSION],
            "/session?directory=%2Fp&limit=100",
            id="sessions",
        ),
        pytest.param(
            lambda c: c.children("ses_1"), [SESSION], "/session/ses_1/children", id="children"
        ),
        pytest.param(
            lambda c: c.statuses("/p"),
            {"ses_1": {"type": "busy"}},
            "/session/status?directory=%2Fp",
            id="statuses",
        ),
        pytest.param(
            lambda c: c.messages("ses_1", limit=3),
            [MESSAGE],
            "/session/ses_1/message?limit=3",
            id="messages",
        ),
        pytest.param(
            lambda c: c.messages("ses_1", limit=3, before="abc="),
            [MESSAGE],
            "/session/ses_1/message?limit=3&before=abc%3D",
            id="messages-before",
        ),
        pytest.param(
            lambda c: c.message("ses_1", "msg_1"),
            MESSAGE,
            "/session/ses_1/message/msg_1",
            id="message",
        ),
        pytest.param(
            lambda c: c.permissions("/p"), [PERMISSION], "/permission?directory=%2Fp", id="perms"
        ),
        pytest.param(
            lambda c: c.questions("/p"), [QUESTION], "/question?directory=%2Fp", id="questions"
        ),
        pytest.param(
            lambda c: c.agents("/p"),
            [{"name": "build", "mode": "primary", "permission": []}],
            "/agent?directory=%2Fp",
            id="agents",
        ),
        pytest.param(
            lambda c: c.providers("/p"),
            {"providers": [{"id": "fake", "models": {"m1": {"id": "m1"}}}], "default": {}},
            "/config/providers?directory=%2Fp",
            id="providers",
        ),
        pytest.param(
            lambda c: c.catalogue("/p"),
            {"all": [{"id": "fake", "env": ["FAKE_KEY"]}], "connected": ["fake"], "default": {}},
            "/provider?directory=%2Fp",
            id="catalogue",
        ),
    ],
)
async def test_a_read_asks_its_route_and_gets_over_a_failure(
    server: FakeServer, client: OpencodeClient, use: Use, answer: object, target: str
) -> None:
    server.script(says_nothing(503), says(answer))
    await use(client)
    assert [(one.method, one.target, one.body) for one in server.seen] == [("GET", target, b"")] * 2


async def test_a_session_is_read_with_aware_moments(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(says(SESSION))
    session = await client.session("ses_1")
    assert session.time.created == datetime(2026, 11, 29, 14, 16, 4, 655000, UTC)
    assert (session.metadata, session.is_archived) == ({"a": "tok"}, False)


async def test_a_page_of_messages_carries_the_cursor_to_the_one_before(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(says([MESSAGE], headers={"X-Next-Cursor": "abc"}), says([]))
    page = await client.messages("ses_1", limit=1)
    assert ([one.info.id for one in page.messages], page.before) == (["msg_1"], "abc")
    assert (await client.messages("ses_1", limit=1, before="abc")).before is None


async def test_messages_may_be_larger_than_a_list(
    server: FakeServer, client: OpencodeClient
) -> None:
    long = {**MESSAGE, "parts": [{"id": "prt_1", "type": "text", "text": "x" * 5_000_000}]}
    server.script(says([long]))
    page = await client.messages("ses_1", limit=1)
    assert len(page.messages[0].parts[0].text or "") == 5_000_000


async def test_unknown_fields_and_kinds_do_not_disturb(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(says({"ses_1": {"type": "dreaming", "depth": 3}}))
    assert (await client.statuses("/p"))["ses_1"].type == "dreaming"


async def test_reading_what_is_not_there_is_not_found(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(NOT_FOUND)
    with pytest.raises(OpencodeNotFoundError):
        await client.session("ses_1")


async def test_a_list_is_never_as_large_as_a_page_of_messages_may_be(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(floods)
    with pytest.raises(OpencodeError) as caught:
        await client.sessions("/p")
    assert caught.value.name == "UPSTREAM_RESPONSE_TOO_LARGE"


async def test_a_slash_after_the_address_does_no_harm(server: FakeServer) -> None:
    server.script(says({"directory": "/p"}))
    async with OpencodeClient(
        f"{server.url}/", username="u", password=None, request_timeout_s=5
    ) as client:
        await client.paths()
    assert (client.base_url, server.seen[0].target) == (server.url, "/path")


# --- health ---


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(says({"status": "ok"}), OpencodeUnsupportedError, id="other-json"),
        pytest.param(says([]), OpencodeUnsupportedError, id="json-list"),
        pytest.param(NOT_FOUND, OpencodeUnsupportedError, id="json-404"),
        pytest.param(shows_the_web_app, OpencodeUnsupportedError, id="html"),
        pytest.param(
            says({"healthy": True, "version": "2.0.1"}), OpencodeUnsupportedError, id="version-2"
        ),
        pytest.param(
            says({"healthy": True, "version": "10.1.0"}), OpencodeUnsupportedError, id="version-10"
        ),
        pytest.param(says_nothing(401), OpencodeUnauthorizedError, id="wrong-password"),
    ],
)
async def test_health_tells_what_is_no_opencode_and_what_does_not_let_us_in(
    server: FakeServer, client: OpencodeClient, answer: Behaviour, kind: type[OpencodeError]
) -> None:
    server.script(answer)
    with pytest.raises(OpencodeError) as caught:
        await client.health()
    assert type(caught.value) is kind


@pytest.mark.parametrize("version", ["1.18.33", "1.19.0-beta", "0.0.0-dev-2026", "local"])
async def test_health_lets_our_generation_and_development_builds_in(
    server: FakeServer, client: OpencodeClient, version: str
) -> None:
    server.script(says({"healthy": True, "version": version}))
    assert (await client.health()).version == version

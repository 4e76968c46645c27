"""Each route: what is sent, and what is made of a real answer (OpenCode 1.18.33)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from opencode_mcp.opencode.client import OpencodeClient, Prompt
from opencode_mcp.opencode_errors import (
    OpencodeError,
    OpencodeNotFoundError,
    OpencodeProtocolError,
    OpencodeRefusedError,
    OpencodeUnauthorizedError,
    OpencodeUnsupportedError,
)
from tests.opencode.fake_server import (
    FakeServer,
    QuickClock,
    floods,
    resets,
    says,
    says_nothing,
    shows_the_web_app,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.opencode.fake_server import Behaviour

    Use = Callable[[OpencodeClient], Awaitable[object]]

SESSION: dict[str, Any] = {
    "id": "ses_1",
    "slug": "hidden-mountain",
    "projectID": "global",
    "directory": "/p",
    "path": "p",
    "cost": 0,
    "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    "title": "t",
    "version": "1.18.33",
    "metadata": {"a": "tok"},
    "time": {"created": 1795961764655, "updated": 1795961764655},
}
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
NOT_FOUND = says({"name": "NotFoundError", "data": {"message": "Session not found: ses_1"}}, 404)
PROMPT = Prompt("msg_7", "do it")


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as running:
        yield running


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[OpencodeClient]:
    async with OpencodeClient(
        server.url, username="opencode", password="pw", request_timeout_s=5, clock=QuickClock()
    ) as opened:
        yield opened


def sent(server: FakeServer) -> tuple[str, str, Any]:
    """Return method, target and JSON body of the only request."""
    (one,) = server.seen
    return one.method, one.target, json.loads(one.body) if one.body else None


# --- reads ---


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


# --- submissions ---


async def test_create_session_sends_folder_title_and_metadata(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(says(SESSION))
    session = await client.create_session("/p", title="t", metadata={"a": "tok"})
    assert session.id == "ses_1"
    body = {"title": "t", "metadata": {"a": "tok"}}
    assert sent(server) == ("POST", "/session?directory=%2Fp", body)


async def test_a_session_without_title_leaves_the_title_to_opencode(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(says(SESSION))
    await client.create_session("/p", title=None, metadata={})
    assert sent(server)[2] == {"metadata": {}}


async def test_a_prompt_leaves_out_what_is_not_chosen(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(says_nothing(204))
    await client.prompt_async("ses_1", PROMPT)
    body = {"messageID": "msg_7", "parts": [{"type": "text", "text": "do it"}]}
    assert sent(server) == ("POST", "/session/ses_1/prompt_async", body)


async def test_a_prompt_sends_what_is_chosen_and_any_text(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(says_nothing(204))
    text = 'ü "quoted" \u2028 \x00 \ud800 🙂'
    prompt = Prompt("msg_7", text, "openrouter/meta/llama", "plan", "high", "be brief")
    await client.prompt_async("ses_1", prompt)
    assert sent(server)[2] == {
        "messageID": "msg_7",
        "parts": [{"type": "text", "text": text}],
        "model": {"providerID": "openrouter", "modelID": "meta/llama"},
        "agent": "plan",
        "variant": "high",
        "system": "be brief",
    }


async def test_a_prompt_of_megabytes_arrives_whole(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(says_nothing(204))
    await client.prompt_async("ses_1", Prompt("msg_7", "x" * 3_000_000))
    assert len(sent(server)[2]["parts"][0]["text"]) == 3_000_000


async def test_a_prompt_answered_with_the_web_app_was_not_taken_for_accepted(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(shows_the_web_app)
    with pytest.raises(OpencodeProtocolError):
        await client.prompt_async("ses_1", PROMPT)


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda c: c.create_session("/p", title=None, metadata={}), id="create"),
        pytest.param(lambda c: c.prompt_async("ses_1", PROMPT), id="prompt"),
    ],
)
async def test_a_submission_whose_answer_is_lost_is_seen_once_and_unknown(
    server: FakeServer, client: OpencodeClient, use: Use
) -> None:
    server.script(resets, says(SESSION))
    with pytest.raises(OpencodeError) as caught:
        await use(client)
    assert caught.value.outcome_unknown
    assert server.count("POST") == 1


# --- changes ---

AT = datetime(2026, 11, 29, 14, 16, 4, 655000, UTC)
CHANGES = [
    pytest.param(
        # a deleted session that runs is found in its own folder only
        lambda c: c.abort("ses_1", "/p"),
        ("POST", "/session/ses_1/abort?directory=%2Fp", b""),
        id="abort",
    ),
    pytest.param(
        lambda c: c.dispose("/p"), ("POST", "/instance/dispose?directory=%2Fp", b""), id="dispose"
    ),
    pytest.param(
        lambda c: c.reject_permission("per_1", "/p"),
        # a message beside it would let the turn go on (facts 5.3)
        ("POST", "/permission/per_1/reply?directory=%2Fp", b'{"reply": "reject"}'),
        id="reject-permission",
    ),
    pytest.param(
        lambda c: c.reject_question("que_1", "/p"),
        ("POST", "/question/que_1/reject?directory=%2Fp", b""),
        id="reject-question",
    ),
    pytest.param(
        lambda c: c.delete_session("ses_1"), ("DELETE", "/session/ses_1", b""), id="delete"
    ),
]


@pytest.mark.parametrize(("use", "request_line"), CHANGES)
async def test_a_change_asks_its_route_and_may_be_sent_again(
    server: FakeServer, client: OpencodeClient, use: Use, request_line: tuple[str, str, bytes]
) -> None:
    server.script(says_nothing(503), says(body=True))
    assert await use(client) in {None, True}
    assert [(one.method, one.target, one.body) for one in server.seen] == [request_line] * 2


async def test_archive_sends_milliseconds(server: FakeServer, client: OpencodeClient) -> None:
    server.script(says({**SESSION, "time": {**SESSION["time"], "archived": 1795961764655}}))
    assert await client.archive_session("ses_1", AT)
    body = {"time": {"archived": 1795961764655}}
    assert sent(server) == ("PATCH", "/session/ses_1", body)


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda c: c.reject_permission("per_1", "/p"), id="reject-permission"),
        pytest.param(lambda c: c.reject_question("que_1", "/p"), id="reject-question"),
        pytest.param(lambda c: c.delete_session("ses_1"), id="delete"),
        pytest.param(lambda c: c.archive_session("ses_1", AT), id="archive"),
    ],
)
async def test_a_change_of_what_is_gone_is_false_only_if_opencode_itself_says_so(
    server: FakeServer, client: OpencodeClient, use: Use
) -> None:
    server.script(NOT_FOUND)
    assert await use(client) is False
    server.script(says_nothing(404))
    with pytest.raises(OpencodeProtocolError):
        await use(client)


async def test_an_answer_other_than_true_is_not_taken_for_a_success(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(says(body=False))
    with pytest.raises(OpencodeProtocolError):
        await client.delete_session("ses_1")


async def test_reading_what_is_not_there_is_not_found(
    server: FakeServer, client: OpencodeClient
) -> None:
    server.script(NOT_FOUND)
    with pytest.raises(OpencodeNotFoundError):
        await client.session("ses_1")


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda c: c.delete_session(".."), id="delete"),
        pytest.param(lambda c: c.abort(".", "/p"), id="abort"),
        pytest.param(lambda c: c.message("ses_1", ""), id="message"),
    ],
)
async def test_an_id_that_would_leave_its_route_is_not_sent_at_all(
    server: FakeServer, client: OpencodeClient, use: Use
) -> None:
    with pytest.raises(OpencodeRefusedError):
        await use(client)
    assert server.seen == []


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

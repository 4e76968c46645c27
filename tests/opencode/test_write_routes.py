"""Each route that changes something: what is sent, and what is taken for a success."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from opencode_mcp.opencode.client import Prompt
from opencode_mcp.opencode_errors import OpencodeError, OpencodeProtocolError, OpencodeRefusedError
from tests.opencode.client_support import NOT_FOUND, SESSION
from tests.opencode.fake_server import resets, says, says_nothing, shows_the_web_app

if TYPE_CHECKING:
    from opencode_mcp.opencode.client import OpencodeClient
    from tests.opencode.client_support import Use
    from tests.opencode.fake_server import FakeServer

PROMPT = Prompt("msg_7", "do it")


def sent(server: FakeServer) -> tuple[str, str, Any]:
    """Return method, target and JSON body of the only request."""
    (one,) = server.seen
    return one.method, one.target, json.loads(one.body) if one.body else None


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

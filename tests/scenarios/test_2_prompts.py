"""Facts 1, 2, 8 and 11, where a turn's judgement or an admission rests on them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.real.support.scripts import bash, write
from tests.scenarios.peer import text_of, tools_of
from tests.support.polling import eventually

if TYPE_CHECKING:
    from tests.scenarios.peer import Peer


async def test_1_8_an_unknown_id_is_not_found_and_another_prefix_is_a_fault(peer: Peer) -> None:
    for path in ("", "/children", "/message"):
        unknown = await peer.call("GET", f"/session/ses_unknown{path}")
        assert (unknown.status, unknown.body["name"]) == (404, "NotFoundError")
    bad = await peer.call("GET", "/session/unknown")
    assert (bad.status, bad.body["name"]) == (500, "UnknownError")


async def test_2_4_an_unknown_model_leaves_a_prompt_without_an_answer(peer: Peer) -> None:
    session_id = await peer.create()
    async with peer.hear() as heard:
        named = {"providerID": "nosuch", "modelID": "none"}
        message_id = await peer.prompt(session_id, "SAY:x", model=named)
        await heard.until(lambda event: event["type"] == "session.error", count=2)
        await heard.idle(session_id)

    assert [m["info"]["id"] for m in await peer.messages(session_id)] == [message_id]
    errors = [
        e["properties"]["error"] for e in heard.of(session_id) if e["type"] == "session.error"
    ]
    assert errors[0]["name"] == "UnknownError"
    assert errors[0]["data"]["message"].startswith("Model not found: nosuch/none.")


async def test_2_4_an_unknown_agent_leaves_nothing(peer: Peer) -> None:
    session_id = await peer.create()
    async with peer.hear() as heard:
        await peer.prompt(session_id, "SAY:x", agent="nosuch")
        await heard.until(lambda event: event["type"] == "session.error", count=2)

    assert await peer.messages(session_id) == []
    assert heard.kinds(session_id) == ["session.error", "session.error"]


async def test_2_5_the_same_message_id_runs_no_second_turn(peer: Peer) -> None:
    session_id = await peer.create()
    async with peer.hear() as heard:
        message_id = await peer.prompt(session_id, "SAY:once")
        await heard.idle(session_id)
        await peer.prompt(session_id, "SAY:once", messageID=message_id)
        await heard.idle(session_id, count=2)

    assert [m["info"]["role"] for m in await peer.messages(session_id)] == ["user", "assistant"]
    assert len(peer.requests(session_id)) == 1


async def test_2_5_the_same_message_id_may_run_again_after_an_abort(peer: Peer) -> None:
    """Measured; the facts speak of finished turns only. Once in some hundred it did not run."""
    session_id = await peer.create()
    message_id = await peer.prompt(session_id, "SLOW:600")
    await peer.streaming(session_id)
    await peer.abort(session_id)
    await peer.prompt(session_id, "SAY:again", messageID=message_id)

    async def ran_again() -> bool:
        return len(await peer.messages(session_id)) > 2

    with suppress(AssertionError):
        await eventually(ran_again, within_s=10, what="it runs again")
    with suppress(AssertionError):  # as rare: the abort met the turn's first word, and it runs on
        await peer.quiet(session_id, within_s=10)
    await peer.abort(session_id)
    await peer.quiet(session_id)
    roles = [m["info"]["role"] for m in await peer.messages(session_id)]
    assert roles in (["user", "assistant", "assistant"], ["user", "assistant"])


async def test_2_8_prompts_of_a_busy_session_join_its_run(peer: Peer) -> None:
    session_id = await peer.create()
    async with peer.hear() as heard:
        await peer.prompt(session_id, "SLOW:8")
        await heard.until(lambda event: event["type"] == "message.part.delta")
        await peer.prompt(session_id, "SAY:second")
        await peer.prompt(session_id, "SAY:third")
        await heard.idle(session_id)

    answers = await peer.answers(session_id)
    assert [text_of(one)[:5] for one in answers] == ["w0 w1", "third"]
    assert heard.kinds(session_id).count("session.idle") == 1


@pytest.mark.parametrize(
    ("script", "finish", "error", "text"),
    [
        pytest.param("SAY:x", "stop", None, "x", id="stop"),
        pytest.param("SAY:x\nFINISH:length", "length", None, "x", id="length"),
        pytest.param(
            "SAY:x\nFINISH:content_filter", "content-filter", "ContentFilterError", "x", id="filter"
        ),
        pytest.param("EMPTY", "stop", None, "", id="empty"),
        pytest.param("BLANK", "stop", None, " \n\t \n", id="blank"),
        pytest.param("MALFORMED", None, "UnknownError", "", id="malformed"),
        pytest.param("STATUS:401", None, "APIError", "", id="refused"),
        pytest.param("STATUS:503,1\nSAY:after all", "stop", None, "after all", id="retried"),
    ],
)
async def test_8_4_how_a_turn_ends_is_in_its_last_message(
    peer: Peer, script: str, finish: str | None, error: str | None, text: str
) -> None:
    session_id = await peer.run(script)

    last = await peer.newest(session_id)
    assert "completed" in last["info"]["time"]
    assert last["info"].get("finish") == finish
    assert last["info"].get("error", {}).get("name") == error
    assert text_of(last) == text


async def test_8_4_a_finish_that_nobody_knows_is_followed_by_another_step(peer: Peer) -> None:
    session_id = await peer.run("SAY:x\nFINISH:weird")

    finishes = [m["info"]["finish"] for m in await peer.answers(session_id)]
    assert finishes == ["unknown", "stop"]


async def test_8_5_an_abort_after_a_broken_try_keeps_what_had_arrived(peer: Peer) -> None:
    """Measured; how much had arrived when the connection broke is chance."""
    session_id = await peer.create()
    async with peer.hear() as heard:
        await peer.prompt(session_id, "SLOW:3\nCUT")
        await heard.until(lambda e: e["properties"].get("status", {}).get("type") == "retry")
        await peer.abort(session_id)

    last = await peer.newest(session_id)
    assert not {"error", "finish"} & set(last["info"])
    assert "w0 w1 w2 cut here ".startswith(text_of(last))


async def test_8_2_an_unknown_route_shows_a_page(peer: Peer) -> None:
    for method in ("GET", "POST", "PUT"):
        reply = await peer.call(method, "/no/such/route")
        assert reply.status == 200
        assert reply.headers["Content-Type"].startswith("text/html")


async def test_8_1_without_credentials_there_is_an_empty_401(peer: Peer) -> None:
    for path in ("/session", "/global/event", "/no/such/route"):
        reply = await peer.anonymously(path)
        assert (reply.status, reply.body) == (401, "")
        assert reply.headers["WWW-Authenticate"] == 'Basic realm="Secure Area"'


async def test_11_1_messages_come_in_pages(peer: Peer) -> None:
    session_id = await peer.create()
    path = f"/session/{session_id}/message"
    for text in "abcde":
        parts = [{"type": "text", "text": text}]
        await peer.post(path, {"parts": parts, "noReply": True})
    newest = await peer.call("GET", path, limit="3")
    cursor = newest.headers["X-Next-Cursor"]
    older = await peer.call("GET", path, limit="3", before=cursor)
    alone = await peer.call("GET", path, before=cursor)
    bad = await peer.call("GET", path, limit="3", before="bad")

    assert [text_of(m) for m in newest.body] == ["c", "d", "e"]
    assert [text_of(m) for m in older.body] == ["a", "b"]
    assert "X-Next-Cursor" not in older.headers
    assert (alone.status, bad.status) == (400, 400)


async def test_11_3_a_summary_is_a_message_of_its_own(peer: Peer) -> None:
    session_id = await peer.run("SAY:x")
    body = {"providerID": "scripted", "modelID": "one"}
    reply = await peer.post(f"/session/{session_id}/summarize", body)
    await peer.answered(session_id)

    assert (reply.status, reply.body) == (200, True)
    asked, summary = (await peer.messages(session_id))[-2:]
    assert [part["type"] for part in asked["parts"]] == ["compaction"]
    assert (summary["info"]["summary"], summary["info"]["agent"]) == (True, "compaction")


async def test_2_2_a_turn_with_tools_changes_files_and_counts_tokens(peer: Peer) -> None:
    target = peer.place.project / "made.txt"
    script = f"{bash('echo hi')}\n{write(target, 'made')}\nTHEN\nSAY:fin"
    session_id = await peer.run(script)
    await peer.answered(session_id)
    content = target.read_text(encoding="utf-8")
    target.unlink()

    assert content == "made"
    first, second = await peer.answers(session_id)
    assert [state["status"] for state in tools_of(first)] == ["completed", "completed"]
    tokens = second["info"]["tokens"]
    assert (tokens["input"], tokens["output"], tokens["reasoning"]) == (10, 5, 0)
    assert second["info"]["cost"] == 0
    assert second["info"]["parentID"] == (await peer.messages(session_id))[0]["info"]["id"]

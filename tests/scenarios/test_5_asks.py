"""Facts 5: permissions and questions, how they are answered and what they outlive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.support.scripts import ask_which, bash
from tests.scenarios.peer import tools_of

if TYPE_CHECKING:
    from tests.scenarios.peer import Peer

_REJECTED = "The user rejected permission to use this specific tool call"


async def test_5_1_a_permission_is_listed_in_its_folder_and_its_session_is_busy(
    peer: Peer,
) -> None:
    session_id = await peer.begin(bash("echo hi"), peer.asking)
    (ask,) = await peer.asked(session_id)

    assert set(ask) == {
        *("id", "sessionID", "permission", "patterns", "metadata", "always", "tool")
    }
    assert (ask["permission"], ask["patterns"], ask["always"]) == ("bash", ["echo hi"], ["echo *"])
    assert ask["metadata"] == {"command": "echo hi"}
    assert ask["tool"]["messageID"] == (await peer.newest(session_id))["info"]["id"]
    assert await peer.asks(session_id, "permission", peer.project) == []
    assert (await peer.statuses(peer.asking))[session_id] == {"type": "busy"}


async def test_5_2_a_reply_needs_the_right_folder_and_the_old_route_does_not(peer: Peer) -> None:
    session_id = await peer.begin(f"{bash('echo hi')}\nTHEN\nSAY:fin", peer.asking)
    (ask,) = await peer.asked(session_id)
    wrong = await peer.reply(ask, "once", peer.project)
    bad_value = await peer.reply(ask, "perhaps")
    bad_prefix = await peer.post("/permission/ses_1/reply", {"reply": "once"})
    path = f"/session/{session_id}/permissions/{ask['id']}"
    right = await peer.post(path, {"response": "once"}, directory=peer.project)
    again = await peer.reply(ask, "once")
    last = await peer.answered(session_id)

    assert (wrong.status, wrong.body["_tag"]) == (404, "PermissionNotFoundError")
    assert wrong.body["requestID"] == ask["id"]
    assert (bad_value.status, bad_prefix.status) == (400, 400)
    assert (right.status, right.body) == (200, True)
    assert again.status == 404
    assert last["info"]["finish"] == "stop"


async def test_5_3_a_rejection_ends_the_turn(peer: Peer) -> None:
    session_id = await peer.begin(f"{bash('echo hi')}\nTHEN\nSAY:fin", peer.asking)
    (ask,) = await peer.asked(session_id)
    reply = await peer.reply(ask, "reject")
    last = await peer.answered(session_id)

    assert (reply.status, reply.body) == (200, True)
    (state,) = tools_of(last)
    assert (state["status"], state["error"]) == ("error", f"{_REJECTED}.")
    assert last["info"]["finish"] == "tool-calls"
    assert "error" not in last["info"]
    assert len(peer.requests(session_id)) == 1


async def test_5_3_a_rejection_with_a_message_lets_the_turn_go_on(peer: Peer) -> None:
    session_id = await peer.begin(f"{bash('echo hi')}\nTHEN\nSAY:fin", peer.asking)
    (ask,) = await peer.asked(session_id)
    await peer.reply(ask, "reject", message="use less force")
    await peer.quiet(session_id, peer.asking)

    first, second = await peer.answers(session_id)
    (state,) = tools_of(first)
    assert state["error"] == f"{_REJECTED} with the following feedback: use less force"
    assert second["info"]["finish"] == "stop"


async def test_5_4_a_rejection_takes_its_siblings_along_and_no_others(peer: Peer) -> None:
    session_id = await peer.begin(f"{bash('echo a')}\n{bash('echo b')}", peer.asking)
    other = await peer.begin(bash("echo c"), peer.asking)
    first, second = await peer.asked(session_id, count=2)
    await peer.asked(other)
    async with peer.hear() as heard:
        taken = await peer.reply(first, "reject")
        late = await peer.reply(second, "reject")
        await heard.idle(session_id)

    assert (taken.status, late.status) == (200, 404)
    assert heard.kinds(session_id).count("permission.replied") == 2
    assert len(await peer.asks(other, "permission")) == 1
    assert await peer.is_busy(other, peer.asking)


async def test_5_4_always_holds_for_the_folder_at_once(peer: Peer) -> None:
    """No other command is used here: what is allowed for good stays allowed in the folder."""
    session_id = await peer.begin(f"{bash('printf a')}\n{bash('printf b')}", peer.asking)
    first, _ = await peer.asked(session_id, count=2)
    await peer.reply(first, "always")
    await peer.quiet(session_id, peer.asking)
    other = await peer.run(bash("printf c"), peer.asking)

    assert {state["status"] for state in tools_of((await peer.answers(other))[0])} == {"completed"}


@pytest.mark.rows("5.8")
@pytest.mark.parametrize("kind", ["permission", "question"])
async def test_5_5_what_was_asked_outlives_an_abort(peer: Peer, kind: str) -> None:
    session_id = await peer.begin(_asking(kind), peer.asking)
    (ask,) = await peer.asked(session_id, kind)
    async with peer.hear() as heard:
        await peer.abort(session_id)
        left = await peer.asks(session_id, kind)
        busy = await peer.is_busy(session_id, peer.asking)
        rejected = await peer.reject(kind, ask, peer.asking)
        again = await peer.reject(kind, ask, peer.asking)
        told = {"permission": "permission.replied", "question": "question.rejected"}[kind]
        await heard.until(lambda event: event["type"] == told)

    assert (left, busy) == ([ask], False)
    assert (rejected.status, again.status) == (200, 404)
    assert await peer.asks(session_id, kind) == []


async def test_5_5_orphans_go_together(peer: Peer) -> None:
    session_id = await peer.begin(f"{bash('echo a')}\n{bash('echo b')}", peer.asking)
    first, second = await peer.asked(session_id, count=2)
    await peer.abort(session_id)
    taken = await peer.reply(first, "reject")
    late = await peer.reply(second, "reject")

    assert (taken.status, late.status) == (200, 404)


@pytest.mark.rows("6.3", "5.8")
@pytest.mark.parametrize("kind", ["permission", "question"])
async def test_5_6_what_was_asked_outlives_a_delete_and_keeps_it_busy(
    peer: Peer, kind: str
) -> None:
    """Freed, it ends with an error, unless OpenCode tries again (`Hearing.tries_again`)."""
    session_id = await peer.begin(_asking(kind), peer.asking)
    (ask,) = await peer.asked(session_id, kind)
    deleted = await peer.call("DELETE", f"/session/{session_id}")
    left = await peer.asks(session_id, kind)
    busy = await peer.is_busy(session_id, peer.asking)
    async with peer.hear() as heard:
        if kind == "permission":
            freed = await peer.reply(ask, "once")
        else:
            freed = await peer.reject(kind, ask, peer.asking)
        tries_again = await heard.tries_again(session_id)
        if tries_again:
            await peer.abort(session_id, directory=peer.asking)
        await heard.idle(session_id)

    assert (deleted.status, left, busy, freed.status) == (200, [ask], True, 200)
    assert tries_again or "session.error" in heard.kinds(session_id)
    assert not await peer.is_busy(session_id, peer.asking)


async def test_5_7_an_archive_changes_nothing_for_what_was_asked(peer: Peer) -> None:
    session_id = await peer.begin(f"{bash('echo hi')}\nTHEN\nSAY:fin", peer.asking)
    (ask,) = await peer.asked(session_id)
    await peer.call("PATCH", f"/session/{session_id}", {"time": {"archived": 5}})
    busy = await peer.is_busy(session_id, peer.asking)
    reply = await peer.reply(ask, "once")
    last = await peer.answered(session_id)

    assert (busy, reply.status, last["info"]["finish"]) == (True, 200, "stop")


async def test_5_8_a_question_is_answered_once(peer: Peer) -> None:
    session_id = await peer.begin(f"{ask_which()}\nTHEN\nSAY:fin")
    (ask,) = await peer.asked(session_id, "question", peer.project)
    path, where = f"/question/{ask['id']}/reply", {"directory": peer.project}
    reply = await peer.post(path, {"answers": [["red"]]}, **where)
    again = await peer.post(path, {"answers": [["red"]]}, **where)
    await peer.quiet(session_id)

    assert set(ask) == {"id", "sessionID", "questions", "tool"}
    assert ask["questions"][0]["question"] == "Which?"
    assert [option["label"] for option in ask["questions"][0]["options"]] == ["red", "blue"]
    assert (reply.status, reply.body) == (200, True)
    assert (again.status, again.body["_tag"]) == (404, "QuestionNotFoundError")
    first, second = await peer.answers(session_id)
    assert '"Which?"="red"' in tools_of(first)[0]["output"]
    assert second["info"]["finish"] == "stop"


async def test_5_8_a_dismissed_question_ends_the_turn(peer: Peer) -> None:
    session_id = await peer.begin(f"{ask_which()}\nTHEN\nSAY:fin")
    (ask,) = await peer.asked(session_id, "question", peer.project)
    await peer.reject("question", ask, peer.project)
    last = await peer.answered(session_id)

    assert tools_of(last)[0]["error"] == "The user dismissed this question"
    assert last["info"]["finish"] == "tool-calls"


async def test_5_9_rules_of_a_session_override_those_of_its_folder(peer: Peer) -> None:
    everything = {"permission": "*", "pattern": "*", "action": "allow"}
    asked_here = {"permission": "bash", "pattern": "*", "action": "ask"}
    free = await peer.begin(bash("echo hi"), peer.asking, permission=[everything])
    asks = await peer.begin(bash("echo hi"), peer.project, permission=[everything, asked_here])
    await peer.asked(asks, directory=peer.project)
    await peer.quiet(free, peer.asking)

    assert tools_of((await peer.answers(free))[0])[0]["status"] == "completed"


async def test_5_9_a_denied_pattern_is_an_error_and_a_denied_tool_is_not_offered(
    peer: Peer,
) -> None:
    """Measured: the turn goes on after either."""
    script = f"{bash('echo hi')}\nTHEN\nSAY:fin"
    rule = {"permission": "bash", "action": "deny"}
    pattern = await peer.begin(script, permission=[{**rule, "pattern": "echo *"}])
    whole = await peer.begin(script, permission=[{**rule, "pattern": "*"}])
    for session_id in (pattern, whole):
        await peer.quiet(session_id)
        assert (await peer.answered(session_id))["info"]["finish"] == "stop"

    (state,) = tools_of((await peer.answers(pattern))[0])
    assert state["status"] == "error"
    assert state["error"].startswith("The user has specified a rule which prevents you")
    (part,) = [p for p in (await peer.answers(whole))[0]["parts"] if p["type"] == "tool"]
    assert (part["tool"], part["state"]["status"]) == ("invalid", "completed")


def _asking(kind: str) -> str:
    return bash("echo hi") if kind == "permission" else ask_which()

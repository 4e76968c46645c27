"""Facts 7: sub-agents, and children that a client made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.real.support.scripts import ENDLESS, bash, subagent
from tests.scenarios.peer import tools_of
from tests.support.polling import eventually

if TYPE_CHECKING:
    from tests.scenarios.peer import Peer
    from tests.twin.shapes import Json

_GO_ON = "\nTHEN\nSAY:fin"


async def _child_that_streams(peer: Peer, session_id: str) -> Json:
    (child,) = await peer.children(session_id)
    await peer.streaming(child["id"])
    return child


async def test_7_1_a_task_runs_in_a_child_session(peer: Peer) -> None:
    session_id = await peer.begin(subagent("SLOW:5") + _GO_ON)
    child = await _child_that_streams(peer, session_id)
    statuses = await peer.statuses()
    await peer.quiet(session_id)

    assert (child["parentID"], child["directory"]) == (session_id, peer.project)
    assert child["title"] == "sub (@general subagent)"
    assert {"permission": "task", "pattern": "*", "action": "deny"} in child["permission"]
    assert statuses == {session_id: {"type": "busy"}, child["id"]: {"type": "busy"}}
    first, second = await peer.answers(session_id)
    assert tools_of(first)[0]["status"] == "completed"
    assert "w4" in tools_of(first)[0]["output"]
    assert second["info"]["finish"] == "stop"


async def test_7_2_an_abort_of_the_parent_stops_the_child(peer: Peer) -> None:
    session_id = await peer.begin(subagent(ENDLESS) + _GO_ON)
    child = await _child_that_streams(peer, session_id)
    await peer.abort(session_id)

    assert await peer.statuses() == {}
    for one in (session_id, child["id"]):
        assert (await peer.newest(one))["info"]["error"]["name"] == "MessageAbortedError"
    (state,) = tools_of(await peer.newest(session_id))
    assert (state["status"], state["error"]) == ("error", "Tool execution aborted")

    async def is_left() -> bool:
        return not peer.streams(child["id"])

    await eventually(is_left, what="the child's stream is closed")


async def test_7_3_an_abort_of_the_child_lets_the_parent_go_on(peer: Peer) -> None:
    session_id = await peer.begin(subagent(ENDLESS) + _GO_ON)
    child = await _child_that_streams(peer, session_id)
    await peer.abort(child["id"])
    await peer.answered(session_id)

    first, second = await peer.answers(session_id)
    (state,) = tools_of(first)
    assert (state["status"], state["error"]) == ("error", "Task cancelled")
    assert second["info"]["finish"] == "stop"


async def test_7_4_a_childs_rejection_ends_the_child_alone(peer: Peer) -> None:
    session_id = await peer.begin(subagent(bash("echo hi")) + _GO_ON, peer.asking)
    (child,) = await peer.children(session_id)
    (ask,) = await peer.asked(child["id"])
    own = await peer.asks(session_id, "permission")
    await peer.reply(ask, "reject")
    await peer.answered(session_id)

    assert own == []
    first, second = await peer.answers(session_id)
    (state,) = tools_of(first)
    assert state["error"].startswith(f"Subagent failed (task_id: {child['id']}): The user rejected")
    assert second["info"]["finish"] == "stop"
    assert not await peer.is_busy(child["id"], peer.asking)


async def test_7_4_an_abort_of_the_parent_leaves_the_childs_ask(peer: Peer) -> None:
    session_id = await peer.begin(subagent(bash("echo hi")) + _GO_ON, peer.asking)
    (child,) = await peer.children(session_id)
    (ask,) = await peer.asked(child["id"])
    await peer.abort(session_id)

    assert await peer.statuses(peer.asking) == {}
    assert await peer.asks(child["id"], "permission") == [ask]


async def test_7_5_children_that_a_client_made_are_not_stopped(peer: Peer) -> None:
    """Measured: a delete of the parent does not stop them either."""
    session_id = await peer.create()
    child = await peer.begin(ENDLESS, parentID=session_id)
    await peer.streaming(child)
    await peer.prompt(session_id, ENDLESS)
    await peer.streaming(session_id)
    await peer.abort(session_id)
    after_abort = await peer.statuses()
    await peer.call("DELETE", f"/session/{session_id}")
    after_delete = await peer.statuses()
    await peer.abort(child, directory=peer.project)  # a deleted one is found in its folder only

    assert after_abort == after_delete == {child: {"type": "busy"}}
    assert await peer.statuses() == {}


async def test_7_6_a_delete_cascades(peer: Peer) -> None:
    session_id = await peer.create()
    child = await peer.create(parentID=session_id)
    grandchild = await peer.create(parentID=child)
    direct = await peer.get(f"/session/{session_id}/children")
    await peer.call("DELETE", f"/session/{session_id}")

    assert [one["id"] for one in direct] == [child]
    for one in (session_id, child, grandchild):
        assert (await peer.call("GET", f"/session/{one}")).status == 404


async def test_7_6_a_delete_of_a_busy_parent_stops_its_subagent(peer: Peer) -> None:
    """Once in some hundred the deleted parent stayed busy (45 s and more), until it was aborted."""
    session_id = await peer.create()
    async with peer.hear() as heard:
        await peer.prompt(session_id, subagent(ENDLESS) + _GO_ON)
        child = await _child_that_streams(peer, session_id)
        await peer.call("DELETE", f"/session/{session_id}")
        try:
            await peer.quiet(session_id, within_s=15)
        except AssertionError:
            await peer.abort(session_id, directory=peer.project)
            await peer.quiet(session_id)
        await heard.until(lambda event: event["type"] == "session.deleted", count=2)

    assert not await peer.is_busy(child["id"])
    assert not peer.streams(child["id"])
    assert "session.error" in heard.kinds(session_id)
    assert "session.error" in heard.kinds(child["id"])

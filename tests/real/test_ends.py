"""Ending a session from every state, confirmed by a witness beside us."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.real.support.scripts import ENDLESS, ask_which, bash
from tests.real.support.situations import (
    SITUATIONS,
    Scene,
    just_given_a_file,
    shell_command,
    waiting_permission,
)
from tests.support.polling import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.bridges import RealBridges
    from tests.real.support.faulty_proxy import FaultyProxy
    from tests.real.support.processes import Marker
    from tests.real.support.witness import Witness
    from tests.support.bridge import Answer, Bridge

#: a prompt with such a file became busy 1.3 s (facts 4.6) to 9.4 s (seen here) after it was sent
_RESOLVED_AFTER_S = 12.0
#: whether the turn had already begun when the end came is a race in these
RACES = {"just-prompted", "just-prompted-big"}


@pytest.fixture
def scene(bridge: Bridge, witness: Witness, asking: Path, project: Path, marker: Marker) -> Scene:
    """Put the actors together."""
    return Scene(bridge, witness, asking, project, marker)


#: the two actions share all steps but the last: archive is tried where that step may differ
CASES = [
    *((situation, "delete") for situation in SITUATIONS),
    *(
        (situation, "archive")
        for situation in (
            "idle",
            "streaming",
            "waiting-permission",
            "just-prompted",
            "asking-subagent",
        )
    ),
]


@pytest.mark.parametrize(("situation", "action"), CASES)
async def test_an_end_leaves_nothing_behind(scene: Scene, situation: str, action: str) -> None:
    reached = await SITUATIONS[situation](scene)
    ended = await scene.bridge.end(reached.session_id, action=action)

    assert (ended.status, ended.is_error) == ("ended", False), ended.text
    await scene.witness.ended(
        reached.session_id,
        reached.folder,
        archived=action == "archive",
        tree=reached.tree,
        marker=scene.marker,
    )
    assert (await scene.bridge.status(reached.session_id)).error == "SESSION_NOT_FOUND"
    said = ended.structured
    assert (said["action"], said["cleanup"], said["done"]) == (action, "complete", True)
    assert said["rejectedPermissions"] == reached.permissions
    assert said["rejectedQuestions"] == reached.questions
    assert said["endedSubsessions"] == len(reached.tree)
    if situation not in RACES:
        assert said["abortedRunningTurn"] is reached.running


async def test_a_delete_swallows_a_prompt_that_opencode_is_still_resolving(scene: Scene) -> None:
    """A prompt with a big file shows neither in status nor as a message for seconds (facts 4.6).

    Only another client can send one. A delete takes it along (facts 6.4). An archive cannot: seen
    here, such a turn begins 3-9 s after an `ended`, since nothing tells of it before.
    """
    reached = await just_given_a_file(scene)
    ended = await scene.bridge.end(reached.session_id, action="delete")

    assert ended.status == "ended"
    await scene.witness.ended(reached.session_id, reached.folder, quiet_s=_RESOLVED_AFTER_S)


async def test_an_end_in_the_first_second_of_a_folder_does_not_spoil_the_folder(
    bridge: Bridge, witness: Witness, untouched: Path
) -> None:
    """OpenCode: an abort while a folder's providers are first read makes every later turn fail.

    Seen here: "All fibers interrupted without error", until that folder's instance is disposed.
    Providers that were read before (`GET /config/providers`) are not hit.
    """
    session_id = await bridge.begin(ENDLESS, untouched)
    ended = await bridge.end(session_id)
    later = await bridge.start("SAY:alive", untouched)

    assert ended.status == "ended"
    assert (later.status, "alive" in later.text) == ("completed", True), later.text
    await witness.ended(session_id, untouched)


async def test_an_archived_session_is_told_to_be_kept(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    """Case 29: it says where the history is, and that there is no way back (facts 6.5)."""
    session_id = (await bridge.start("SAY:keep me", project)).session_id
    answer = await bridge.end(session_id, action="archive")

    assert answer.session_id == session_id
    assert "archive" in answer.text.lower()
    assert await witness.user_texts(session_id) == ["SAY:keep me"]


async def test_the_default_action_is_a_setting(
    bridges: RealBridges, witness: Witness, project: Path
) -> None:
    bridge = await bridges.attached(END_ACTION="archive")
    session_id = (await bridge.start("SAY:keep me", project)).session_id
    answer = await bridge.end(session_id)

    assert answer.structured["action"] == "archive"
    await witness.ended(session_id, project, archived=True)


async def test_a_session_ended_twice_is_not_found_and_opencode_is_not_asked(
    proxied: Bridge, proxy: FaultyProxy, project: Path
) -> None:
    session_id = (await proxied.start("SAY:ready", project)).session_id
    first = await proxied.end(session_id)
    proxy.seen.clear()
    second = await proxied.end(session_id)
    reply = await proxied.call("opencode-reply", sessionId=session_id, prompt="SAY:no")
    status = await proxied.status(session_id)

    assert first.status == "ended"
    assert (second.status, second.is_error) == ("not_found", False)
    assert second.structured["action"] == "none"
    assert (reply.error, status.error) == ("SESSION_NOT_FOUND", "SESSION_NOT_FOUND")
    assert "delete" in reply.text.lower(), "it tells how the session ended"
    asked = [seen for seen in proxy.seen if seen.path != "/global/event"]
    assert asked == []


async def test_two_ends_at_once_get_one_answer(
    scene: Scene, witness: Witness, project: Path
) -> None:
    reached = await shell_command(scene)
    answers = await asyncio.gather(*(scene.bridge.end(reached.session_id) for _ in range(2)))

    assert [answer.status for answer in answers] == ["ended", "ended"]
    first, second = (stable(answer) for answer in answers)
    assert first == second
    await witness.ended(reached.session_id, project, marker=scene.marker)


async def test_two_ends_at_once_from_two_servers_leave_nothing_and_claim_nothing_false(
    bridges: RealBridges, scene: Scene, witness: Witness
) -> None:
    one, other = await bridges.attached(), await bridges.attached_process()
    reached = await waiting_permission(replace(scene, bridge=one))
    answers = await asyncio.gather(one.end(reached.session_id), other.end(reached.session_id))

    assert {answer.status for answer in answers} <= {"ended", "not_found"}
    assert "ended" in {answer.status for answer in answers}
    assert not any(answer.is_error for answer in answers)
    await witness.ended(reached.session_id, scene.asking, marker=scene.marker)


def stable(answer: Answer) -> dict[str, object]:
    """Return what two answers to one end must share: all but their own durations."""
    return {
        name: value
        for name, value in answer.structured.items()
        if name not in {"elapsedMs", "content"}
    }


async def test_a_child_that_another_client_made_is_ended_with_its_parent(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    """OpenCode: such a child is not aborted with its parent (facts 7.5)."""
    parent = (await bridge.start("SAY:ready", project)).session_id
    child = await witness.create(project, parentID=parent)
    await witness.prompt(child, {"type": "text", "text": ENDLESS})
    await witness.streaming(child)
    ended = await bridge.end(parent)

    assert (ended.status, ended.structured["endedSubsessions"]) == ("ended", 1)
    await witness.ended(parent, project, tree=(child,))


async def test_an_end_touches_no_other_session_of_the_folder(
    bridge: Bridge, witness: Witness, asking: Path, marker: Marker
) -> None:
    waiting = await bridge.begin(bash(marker.command), asking, approval_policy="caller")
    wondering = await bridge.begin(ask_which(), asking, approval_policy="caller")
    talking = await bridge.begin(ENDLESS, asking)
    doomed = await bridge.begin(bash(marker.command), asking, approval_policy="caller")
    await witness.streaming(talking)

    async def all_wait() -> bool:
        asked = {item["sessionID"] for item in await witness.permissions(asking)}
        wondered = {item["sessionID"] for item in await witness.questions(asking)}
        return asked == {waiting, doomed} and wondered == {wondering}

    await eventually(all_wait, what="all of them wait")
    ended = await bridge.end(doomed)

    assert ended.structured["rejectedPermissions"] == 1
    await witness.ended(doomed, asking)
    assert {item["sessionID"] for item in await witness.permissions(asking)} == {waiting}
    assert {item["sessionID"] for item in await witness.questions(asking)} == {wondering}
    assert witness.streams(talking)
    assert {waiting, wondering, talking} <= set(await bridge.listed())
    for session_id in (waiting, wondering, talking):
        assert (await bridge.end(session_id)).status == "ended"


async def test_an_ask_is_told_as_waiting_for_approval(
    bridge: Bridge, asking: Path, marker: Marker
) -> None:
    """Case B13: it does not look like a turn that runs."""
    answer = await bridge.start(
        bash(marker.command), asking, wait_seconds=30, approval_policy="caller"
    )

    assert (answer.status, answer.is_error) == ("waiting_for_approval", False)
    assert answer.structured["pendingApprovalCount"] == 1
    (pending,) = answer.structured["pendingApprovals"]
    assert (pending["kind"], pending["permission"]) == ("permission", "bash")
    assert pending["patterns"] == [marker.command]
    assert (await bridge.end(answer.session_id)).structured["rejectedPermissions"] == 1


async def test_a_question_is_told_as_waiting_for_approval(bridge: Bridge, asking: Path) -> None:
    answer = await bridge.start(ask_which(), asking, wait_seconds=30, approval_policy="caller")

    assert answer.status == "waiting_for_approval"
    (pending,) = answer.structured["pendingApprovals"]
    assert pending["kind"] == "question"
    assert (await bridge.end(answer.session_id)).structured["rejectedQuestions"] == 1


async def test_no_turn_gets_in_once_an_end_was_accepted(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    session_id = (await bridge.start("SAY:ready", project)).session_id
    ended, reply = await asyncio.gather(
        bridge.end(session_id),
        bridge.call("opencode-reply", sessionId=session_id, prompt=ENDLESS, wait_seconds=0),
    )

    assert ended.status == "ended"
    assert reply.error in {"SESSION_BUSY", "SESSION_NOT_FOUND", None}
    await witness.ended(session_id, project)

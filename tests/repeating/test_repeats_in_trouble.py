"""The same call again, after a first one that was refused, lost or ended, or in an outage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.repeating.repeats import ID, ask, change, replayed, reply, row_of, turn_of
from tests.support.polling import eventually
from tests.turns.cancels import ENDLESS, running
from tests.turns.reading import only_session, said, settled_end, submissions
from tests.twin import Refuse, Reset, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Answer, Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin

PROMPT = r"/prompt_async$"


@pytest.mark.parametrize(
    "more",
    [{"cwd": "/"}, {"model": "no/such"}, {"timeout_seconds": 999_999}],
    ids=["folder", "model", "limit"],
)
async def test_a_call_that_was_refused_leaves_its_id_free_for_another(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path, more: dict[str, object]
) -> None:
    refused = await bridge.call(
        "opencode", **{"prompt": "SAY:x", "cwd": str(project), "request_id": ID, **more}
    )
    assert refused.error in {"PATH_NOT_ALLOWED", "INVALID_ARGUMENT"}
    assert not replayed(refused)
    assert refused.structured["resendSafety"] == "not_submitted"
    assert row_of(bridges) is None
    assert "expiresAt" not in refused.structured["request"]
    assert (await ask(bridge, "SAY:x", project)).status == "completed"
    assert submissions(twin) == ["SAY:x"]


@pytest.mark.parametrize("path", [r"^/session$", PROMPT], ids=["session", "prompt"])
@pytest.mark.parametrize("code", [400, 401, 429])
async def test_a_prompt_that_opencode_refused_is_sent_by_the_repeat(
    bridge: Bridge, twin: Twin, project: Path, path: str, code: int
) -> None:
    twin.fail(Status(code), method="POST", path=path)
    refused = await ask(bridge, "SAY:x", project)
    again = await ask(bridge, "SAY:x", project)

    assert (refused.is_error, refused.structured["resendSafety"]) == (True, "not_submitted")
    assert (again.status, replayed(again)) == ("completed", False)
    assert said(twin, again.session_id) == ["SAY:x"]


async def test_a_call_without_a_free_place_may_be_repeated_when_there_is_one(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    bridge = await bridges.attached(MAX_SESSIONS="1")
    session_id = (await bridge.start("SAY:x", project)).session_id
    assert (await ask(bridge, "SAY:y", project)).error == "SESSION_CAPACITY"
    await bridge.end(session_id)
    assert (await ask(bridge, "SAY:y", project)).status == "completed"
    assert submissions(twin) == ["SAY:x", "SAY:y"]


async def test_a_busy_session_takes_the_repeated_reply_once_it_is_idle(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = await bridge.begin(ENDLESS, project)
    await running(twin, session_id)
    busy = await reply(bridge, session_id, "SAY:next")
    await bridge.call("opencode-cancel", sessionId=session_id, wait_ms=10_000)
    again = await reply(bridge, session_id, "SAY:next")

    assert (busy.error, again.status, replayed(again)) == ("SESSION_BUSY", "completed", False)


async def test_a_prompt_whose_fate_is_unknown_is_not_sent_by_the_repeat(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    twin.fail(Reset(), path=PROMPT)
    lost = await ask(bridge, "SAY:lost", project)
    again = await ask(bridge, "SAY:lost", project)

    assert [one.error for one in (lost, again)] == ["SUBMISSION_UNCONFIRMED"] * 2
    assert [one.structured["resendSafety"] for one in (lost, again)] == ["unknown"] * 2
    assert [replayed(one) for one in (lost, again)] == [False, True]
    assert again.session_id == only_session(twin)
    assert submissions(twin) == ["SAY:lost"]


async def test_a_prompt_that_arrived_after_all_is_told_of_by_the_repeat(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    twin.pace.resolving_s = 3.0  # OpenCode is still resolving the prompt (facts 4.6)
    twin.fail(Reset(after=True), path=PROMPT)
    lost = await ask(bridge, "SAY:late", project)
    assert lost.error == "SUBMISSION_UNCONFIRMED"
    answers: list[Answer] = []

    async def told() -> bool:
        answers.append(await ask(bridge, "SAY:late", project, wait_seconds=10))
        return not answers[-1].is_error

    await eventually(told, what="the repeat tells of the turn")
    assert (answers[-1].status, replayed(answers[-1])) == ("completed", True)
    assert submissions(twin) == ["SAY:late"]


async def test_after_the_end_of_its_session_a_repeat_is_told_so_and_sends_nothing(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    first = await ask(bridge, "SAY:x", project)
    assert (await settled_end(bridge, first.session_id)).status == "ended"
    again = await ask(bridge, "SAY:x", project)

    assert (again.error, again.session_id) == ("REQUEST_ENDED", first.session_id)
    assert ("ended at" in again.text, replayed(again)) == (True, True)
    assert again.structured["resendSafety"] == "unknown"
    assert submissions(twin) == ["SAY:x"]


async def test_a_repeat_while_its_session_ends_says_so(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    first = await ask(bridge, "SAY:x", project)
    stuck = twin.fail(Status(503), method="DELETE", times=None)
    await bridge.end(first.session_id)
    again = await ask(bridge, "SAY:x", project)
    stuck.release()

    assert (again.status, again.is_error, replayed(again)) == ("ending", False, True)
    assert submissions(twin) == ["SAY:x"]


async def test_a_repeat_while_opencode_cannot_be_asked_is_unknown_and_sends_nothing(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    first = await ask(bridge, ENDLESS, project, wait_seconds=0)
    await running(twin, first.session_id)
    twin.fail(Refuse(), method="GET", path=r"^/session/status$")
    await bridge.listed()
    again = await ask(bridge, ENDLESS, project, wait_seconds=0)
    await twin.listen()

    assert turn_of(again) == turn_of(first)
    assert (again.status, again.is_error, replayed(again)) == ("unknown", False, True)
    assert submissions(twin) == [ENDLESS]


async def test_an_older_turn_is_no_part_of_the_doubt_about_a_later_prompt(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """The session is quarantined for the later one; that the older one is over is known."""
    first = await ask(bridge, "SAY:one", project)
    twin.fail(Reset(), path=PROMPT)
    lost = await bridge.call("opencode-reply", sessionId=first.session_id, prompt="SAY:two")
    again = await ask(bridge, "SAY:one", project)

    assert lost.error == "SUBMISSION_UNCONFIRMED"
    assert (again.status, again.is_error, turn_of(again)) == ("completed", False, turn_of(first))


async def test_an_older_turn_that_cannot_be_read_now_is_unknown_and_not_sent_again(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    first = await ask(bridge, "SAY:one", project)
    await bridge.call("opencode-reply", sessionId=first.session_id, prompt="SAY:two")
    down = twin.fail(Status(503), method="GET", path=r"/message", times=None)
    again = await ask(bridge, "SAY:one", project)
    down.release()

    assert (again.status, again.is_error, turn_of(again)) == ("unknown", False, turn_of(first))
    assert submissions(twin) == ["SAY:one", "SAY:two"]


async def test_a_prompt_that_provably_never_came_is_sent_by_the_repeat(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    """The process died between the two: the refusal was written down, the release was not."""
    twin.fail(Status(401), path=PROMPT)
    first = await ask(bridge, "SAY:x", project)
    (session_id,) = await bridge.listed()
    await change(
        bridges,
        "INSERT INTO requests (owner, request_id, digest, call, newest_call, holder, created_at,"
        " expires_at, session_id, turn)"
        " VALUES ('local', ?, 'd', 'c', 'c', 'h', '2026', '9999', ?, 1)",
        ID,
        session_id,
    )
    again = await ask(bridge, "SAY:x", project)

    assert first.error == "OPENCODE_UNAUTHORIZED"
    assert (again.status, replayed(again)) == ("completed", False)
    assert again.session_id != session_id


async def test_a_claim_that_nobody_is_at_any_more_is_free(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    """Its call was cancelled while it claimed, or could not be let go of: it sent nothing."""
    await ask(bridge, "SAY:x", project)
    await change(bridges, "UPDATE requests SET session_id = NULL, turn = NULL, call = 'gone'")
    again = await ask(bridge, "SAY:x", project)

    assert (again.status, replayed(again)) == ("completed", False)
    assert len(submissions(twin)) == 2

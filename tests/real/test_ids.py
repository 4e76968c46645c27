"""The three names of an id, and ids that are none of ours."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from tests.real.support.scripts import ENDLESS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.faulty_proxy import FaultyProxy
    from tests.real.support.witness import Witness
    from tests.support.bridge import Bridge

NAMES = ("sessionId", "threadId", "conversationId")
#: what each tool needs beside an id
TOOLS: dict[str, dict[str, object]] = {
    "opencode-reply": {"prompt": "SAY:again"},
    "opencode-status": {},
    "opencode-end": {},
}
#: case 44: ids made to reach another route or another session
HOSTILE = {
    "path": "x/../ses_other",
    "dispose": "../instance/dispose?x=",
    "query": "ses_a?directory=/",
    "blanks": "   ",
    "newline": "ses_a\nses_b",
    "two": "ses_a,ses_b",
    "encoded": "ses_%2e%2e%2fses_b",
    "unknown": "ses_0123456789abcdef",
    "no-prefix": "hello",
    "quote": "ses_' OR '1'='1",
    "longest": "s" * 200,
}


@pytest.mark.parametrize("name", NAMES)
async def test_each_name_works_with_each_tool(
    bridge: Bridge, witness: Witness, project: Path, name: str
) -> None:
    session_id = (await bridge.start("SAY:ready", project)).session_id
    named: dict[str, object] = {name: session_id}
    reply = await bridge.call("opencode-reply", prompt="SAY:again", **named)
    status = await bridge.call("opencode-status", **named)
    ended = await bridge.call("opencode-end", **named)

    assert reply.session_id == status.session_id == ended.session_id == session_id
    assert ended.status == "ended"
    await witness.ended(session_id, project)


async def test_null_counts_as_absent(bridge: Bridge, project: Path) -> None:
    session_id = (await bridge.start("SAY:ready", project)).session_id
    answer = await bridge.call(
        "opencode-status", sessionId=None, threadId=session_id, conversationId=None
    )

    assert answer.session_id == session_id


async def test_two_ids_at_once_are_refused_even_if_equal(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    session_id = await bridge.begin(ENDLESS, project)
    await witness.streaming(session_id)
    for tool, other in itertools.product(TOOLS, (session_id, "ses_other")):
        answer = await bridge.call(tool, sessionId=session_id, threadId=other, **TOOLS[tool])

        assert (answer.is_error, answer.error) == (True, "INVALID_ARGUMENT")
        assert "sessionId" in answer.text
    assert witness.streams(session_id), "it runs on"
    await bridge.end(session_id)


async def test_a_missing_id_is_refused(bridge: Bridge) -> None:
    for tool in ("opencode-reply", "opencode-end"):
        answer = await bridge.call(tool, **TOOLS[tool])

        assert answer.error == "INVALID_ARGUMENT"
        assert all(name in answer.text for name in NAMES)


async def test_an_id_that_is_not_ours_reaches_nothing(proxied: Bridge, proxy: FaultyProxy) -> None:
    """Case 44: refused or not found, and OpenCode hears nothing at all of it."""
    for name, wrong in zip(itertools.cycle(NAMES), HOSTILE.values(), strict=False):
        named: dict[str, object] = {name: wrong}
        reply = await proxied.call("opencode-reply", prompt="SAY:x", **named)
        status = await proxied.call("opencode-status", **named)
        ended = await proxied.call("opencode-end", **named)

        assert {reply.error, status.error} <= {"SESSION_NOT_FOUND", "INVALID_ARGUMENT"}
        assert ended.status == "not_found" or ended.error == "INVALID_ARGUMENT"
    assert proxy.seen == []


async def test_an_id_of_a_wrong_length_is_refused(bridge: Bridge) -> None:
    for tool, wrong in itertools.product(TOOLS, ("", "x" * 201)):
        answer = await bridge.call(tool, sessionId=wrong, **TOOLS[tool])

        assert answer.error == "INVALID_ARGUMENT"
        assert "sessionId" in answer.text


async def test_a_session_of_another_client_is_not_ours_to_end(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    foreign = await witness.create(project)
    answer = await bridge.end(foreign)

    assert (answer.status, answer.is_error) == ("not_found", False)
    assert answer.structured["action"] == "none"
    assert await witness.session(foreign) is not None

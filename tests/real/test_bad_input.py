"""Bad input: a clear error, nothing sent to OpenCode, nothing written to the database."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from tests.real.support.bridges import RealBridges
from tests.real.support.database import dump
from tests.real.support.faulty_proxy import FaultyProxy
from tests.real.support.sandbox import write_project

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.real.support.opencode_server import OpencodeServer
    from tests.real.support.witness import Witness
    from tests.support.bridge import Bridge

#: must never come back in an error's text
_SECRET = "SECRET-PROMPT"
#: stands for the session of the test
_OURS = "<ours>"
_PROMPT = {"prompt": _SECRET}
_REPLY = {"prompt": _SECRET, "sessionId": _OURS}

#: tool, arguments, and the property that the error must name
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "no-prompt": ("opencode", {}, "prompt"),
    "empty-prompt": ("opencode", {"prompt": ""}, "prompt"),
    "blank-prompt": ("opencode", {"prompt": " \n "}, "prompt"),
    "prompt-not-text": ("opencode", {"prompt": 5}, "prompt"),
    "prompt-a-list": ("opencode", {"prompt": [_SECRET]}, "prompt"),
    "unknown-property": ("opencode", {**_PROMPT, "bogus": _SECRET}, "bogus"),
    "python-spelling": ("opencode", {**_PROMPT, "wait_seconds": 1}, "wait_seconds"),
    "request-id-with-blanks": ("opencode", {**_PROMPT, "request-id": "o n e"}, "request-id"),
    "sandbox-unknown": ("opencode", {**_PROMPT, "sandbox": "none"}, "sandbox"),
    "policy-unknown": ("opencode", {**_PROMPT, "approval-policy": "always"}, "approval-policy"),
    "ids-and-id": ("opencode-status", {"sessionId": _OURS, "ids": [_OURS]}, "ids"),
    "cancel-wait-too-long": ("opencode-cancel", {"sessionId": _OURS, "wait-ms": 20_001}, "wait-ms"),
    "wait-negative": ("opencode", {**_PROMPT, "wait-seconds": -1}, "wait-seconds"),
    "wait-too-long": ("opencode", {**_PROMPT, "wait-seconds": 601}, "wait-seconds"),
    "wait-a-word": ("opencode", {**_PROMPT, "wait-seconds": "soon"}, "wait-seconds"),
    "wait-a-fraction": ("opencode", {**_PROMPT, "wait-seconds": 1.5}, "wait-seconds"),
    "wait-a-boolean": ("opencode", {**_PROMPT, "wait-seconds": True}, "wait-seconds"),
    "timeout-zero": ("opencode", {**_PROMPT, "timeout-seconds": 0}, "timeout-seconds"),
    "timeout-too-long": ("opencode", {**_PROMPT, "timeout-seconds": 21_601}, "timeout-seconds"),
    "model-without-provider": ("opencode", {**_PROMPT, "model": "gpt"}, "model"),
    "model-empty": ("opencode", {**_PROMPT, "model": ""}, "model"),
    "agent-a-list": ("opencode", {**_PROMPT, "agent": ["build"]}, "agent"),
    "cwd-relative": ("opencode", {**_PROMPT, "cwd": "project"}, "cwd"),
    "cwd-outside": ("opencode", {**_PROMPT, "cwd": "/etc"}, "/etc"),
    "cwd-missing": ("opencode", {**_PROMPT, "cwd": "<folder>/missing"}, "missing"),
    "cwd-a-file": ("opencode", {**_PROMPT, "cwd": "<folder>/README.md"}, "README.md"),
    "cwd-climbs-out": ("opencode", {**_PROMPT, "cwd": "<folder>/../../../.."}, "cwd"),
    "cwd-by-a-link": ("opencode", {**_PROMPT, "cwd": "<folder>/link"}, "link"),
    "cwd-a-tilde": ("opencode", {**_PROMPT, "cwd": "~"}, "cwd"),
    "cwd-with-nul": ("opencode", {**_PROMPT, "cwd": "<folder>/a\0b"}, "cwd"),
    "reply-no-prompt": ("opencode-reply", {"sessionId": _OURS}, "prompt"),
    "reply-cwd": ("opencode-reply", {**_REPLY, "cwd": "<folder>"}, "cwd"),
    "reply-title": ("opencode-reply", {**_REPLY, "title": "x"}, "title"),
    "reply-base": ("opencode-reply", {**_REPLY, "base-instructions": _SECRET}, "base-instructions"),
    "reply-bad-model": ("opencode-reply", {**_REPLY, "model": "gpt"}, "model"),
    "reply-wait": ("opencode-reply", {**_REPLY, "wait-seconds": 601}, "wait-seconds"),
    "status-limit-zero": ("opencode-status", {"limit": 0}, "limit"),
    "status-limit-high": ("opencode-status", {"limit": 101}, "limit"),
    "status-offset": ("opencode-status", {"offset": -1}, "offset"),
    "status-unknown": ("opencode-status", {"sessionId": _OURS, "verbose": True}, "verbose"),
    "info-section": ("opencode-info", {"section": "sessions"}, "section"),
    "info-cwd-outside": ("opencode-info", {"section": "models", "cwd": "/etc"}, "/etc"),
    "info-not-paged": ("opencode-info", {"limit": 5}, "limit"),
    "info-no-provider": ("opencode-info", {"section": "roots", "provider": "x"}, "provider"),
    "end-action": ("opencode-end", {"sessionId": _OURS, "action": "purge"}, "action"),
    "end-action-none": ("opencode-end", {"sessionId": _OURS, "action": "none"}, "action"),
    "end-unknown": ("opencode-end", {"sessionId": _OURS, "force": True}, "force"),
}


@dataclass(frozen=True)
class Refusing:
    """A server with one idle session, and all that could be changed by a call to it."""

    bridge: Bridge
    proxy: FaultyProxy
    database: Path
    folder: Path
    session_id: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def refusing(
    opencode: OpencodeServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Refusing]:
    """Give one server for the whole table: refused calls leave nothing behind, so it can last."""
    base = tmp_path_factory.mktemp("refusing")
    folder = write_project(base / "project")
    (folder / "link").symlink_to("/etc")
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(FaultyProxy(opencode.url))
        bridges = RealBridges(stack, base, opencode, base)
        bridge = await bridges.attached(SERVER_URL=proxy.url)
        session_id = (await bridge.start("SAY:ready", folder)).session_id
        await bridge.listed()
        yield Refusing(bridge, proxy, bridges.database, folder, session_id)


@pytest.mark.parametrize("case", CASES)
async def test_bad_input_is_refused_before_anything_happens(refusing: Refusing, case: str) -> None:
    tool, arguments, named = CASES[case]
    folder = str(refusing.folder)
    given = {name: _fill(value, refusing) for name, value in arguments.items()}
    if tool == "opencode":
        given.setdefault("cwd", folder)
    before = dump(refusing.database)
    refusing.proxy.seen.clear()
    answer = await refusing.bridge.call_exactly(tool, given)

    assert answer.is_error
    assert answer.structured["kind"] == "error"
    expected = {"INVALID_ARGUMENT", "PATH_NOT_ALLOWED"} if "cwd" in case else {"INVALID_ARGUMENT"}
    assert answer.error in expected
    assert named in answer.text
    assert _SECRET not in str(answer.structured)
    assert refusing.proxy.seen == []
    assert dump(refusing.database) == before


def _fill(value: object, refusing: Refusing) -> object:
    if isinstance(value, str):
        return value.replace(_OURS, refusing.session_id).replace("<folder>", str(refusing.folder))
    return value


async def test_a_number_sent_as_text_is_taken(bridge: Bridge, project: Path) -> None:
    answer = await bridge.start("SAY:fine", project, wait_seconds="30", timeout_seconds="60")

    assert answer.status == "completed"


async def test_an_unknown_tool_is_an_error_and_opencode_is_not_asked(
    proxied: Bridge, proxy: FaultyProxy
) -> None:
    result = await proxied.client.call_tool_mcp("opencode-explode", {"prompt": _SECRET})

    assert result.is_error
    assert _SECRET not in str(result)
    assert proxy.seen == []


async def test_good_input_after_bad_input_works(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    bad = await bridge.call("opencode", prompt=_SECRET, bogus=1)
    good = await bridge.start("SAY:fine", project)

    assert bad.is_error
    assert good.status == "completed"
    assert len(await witness.sessions(project)) == 1

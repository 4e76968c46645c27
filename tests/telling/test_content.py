"""No content in the log, at no level, whatever goes wrong; prompts and answers with LOG_CONTENT."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from opencode_mcp.engine.engine import Engine
from opencode_mcp.log_events import CONTENT_CHARS
from tests.real.support.sandbox import write_project
from tests.real.support.scripts import bash, tool
from tests.support.polling import eventually
from tests.telling.lines import our_lines
from tests.turns.exits import leave, serving, told
from tests.turns.reading import only_session
from tests.twin import Body, Reset, Status
from tests.worker import ASK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.telling.lines import Log
    from tests.twin import Twin

SECRET = "hunter2"
_OPTIONS = [{"label": f"{SECRET} {n}", "description": SECRET} for n in range(2)]
_QUESTION = tool(
    "question", questions=[{"question": f"Is it {SECRET}?", "header": SECRET, "options": _OPTIONS}]
)


async def _asked(twin: Twin, folder: Path, kind: str) -> str:
    async def check() -> list[str]:
        return [str(ask["id"]) for ask in twin.asks.of(kind, str(folder))]

    return (await eventually(check, what=f"a {kind} waits"))[0]


async def _say_it_everywhere(bridge: Bridge, twin: Twin, project: Path) -> None:
    """Put the secret wherever content goes: in and out, in what is asked and in what fails."""
    asking = write_project(project / "asking", ASK)
    script = "\n".join([bash(f"echo {SECRET}"), "THEN", f"SAY:{SECRET} is done"])
    instructions = {"base-instructions": SECRET, "developer-instructions": SECRET}
    caller = {"approval-policy": "caller", "cwd": str(asking)}
    first = await bridge.call_exactly(
        "opencode", {"prompt": script, "title": SECRET, **instructions, **caller}
    )
    named = {"sessionId": first.session_id}
    permission = {**named, "approvalId": await _asked(twin, asking, "permission")}
    wrong = {"answers": [[SECRET]], "decision": "allow"}
    assert (await bridge.call("opencode-approve", **permission, **wrong)).is_error
    await bridge.call("opencode-approve", **permission, decision="reject", feedback=SECRET)
    await bridge.call("opencode-status", **named, wait_seconds=20)
    asks = {**named, "prompt": f"{SECRET}\n{_QUESTION}", "developer-instructions": SECRET}
    await bridge.call_exactly("opencode-reply", asks)
    question = {**named, "approvalId": await _asked(twin, asking, "question")}
    wrong = {"answers": [[f"not {SECRET}", "x"]], "decision": "allow"}
    assert (await bridge.call("opencode-approve", **question, **wrong)).is_error
    await bridge.call("opencode-approve", **question, decision="allow", answers=[[SECRET]])
    await bridge.call("opencode-status", **named, wait_seconds=20)
    await _make_it_fail(bridge, twin, named)
    for section in ("answer", "tool-calls", "diff"):
        await bridge.call("opencode-output", **named, turn=1, section=section, snapshot_id=SECRET)
        await bridge.call("opencode-output", **named, turn=1, section=section)
    await bridge.end(first.session_id)


async def _make_it_fail(bridge: Bridge, twin: Twin, named: dict[str, str]) -> None:
    reply: dict[str, Any] = {**named, "prompt": f"SAY:{SECRET}"}
    leaky = json.dumps([{"info": SECRET, "parts": [SECRET]}]).encode()
    for fault, path in (
        (Status(500), r"/message$"),
        (Body(leaky), r"/message$"),
        (Body(SECRET.encode(), "text/html"), r"/session/status$"),
        (Reset(after=True), r"/prompt_async$"),
    ):
        planned = twin.fail(fault, path=path, times=2)
        await bridge.call_exactly("opencode-reply", reply)
        await bridge.call("opencode-status", **named, wait_seconds=20)
        assert planned.hits
        planned.release()
        await bridge.settled(named["sessionId"])
    for bad in ({"prompt": [SECRET]}, {"prompt": SECRET, "model": SECRET}, {SECRET: SECRET}):
        assert (await bridge.call_exactly("opencode-reply", {**named, **bad})).is_error
    await bridge.call_exactly("opencode-reply", {**named, "prompt": f"{SECRET}\nSTATUS:400"})
    await bridge.call_exactly("opencode-reply", {**named, "prompt": f"{SECRET}\nMALFORMED"})


async def test_no_content_is_logged_at_any_level(
    log: Log, bridge: Bridge, twin: Twin, project: Path
) -> None:
    await _say_it_everywhere(bridge, twin, project)
    assert {"turn_over", "approval_answered", "request_repeated"} <= log.events()
    assert SECRET not in _without_answers(log.text)


def _without_answers(text: str) -> str:
    """Leave out what the test's own client logs."""
    return "\n".join(line for line in text.splitlines() if json.loads(line)["logger"] != "bridge")


async def test_a_bug_is_logged_without_what_it_quotes(
    log: Log, bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        try:
            int(SECRET)
        except ValueError as error:
            raise KeyError(SECRET) from error

    monkeypatch.setattr(Engine, "page", fail)
    answer = await bridge.call("opencode-status")
    assert answer.error == "INTERNAL"
    (line,) = log.of("unexpected_failure")
    assert line["where"] == "a tool call"
    assert line["tool"] == "opencode-status"
    assert "KeyError" in line["exception"]
    assert "int(SECRET)" in line["exception"], "the traceback is there"
    assert SECRET not in _without_answers(log.text)


async def test_prompts_and_answers_alone_are_logged_where_the_operator_wants_it(
    log: Log, bridge: Bridge, twin: Twin, project: Path
) -> None:
    log.with_content()
    long = "x" * (CONTENT_CHARS + 500)
    answer = await bridge.start(
        f"SAY:{SECRET}\n{long}", project, title="hush", base_instructions="hush"
    )
    (prompt,), (said,) = log.of("prompt"), log.of("answer")

    assert prompt["session_id"] == said["session_id"] == answer.session_id == only_session(twin)
    assert prompt["turn_id"] == said["turn_id"] == answer.structured["turnId"]
    assert prompt["text"] == f"SAY:{SECRET}\n{long}"[:CONTENT_CHARS]
    assert prompt["chars"] == len(f"SAY:{SECRET}\n{long}")
    assert (said["text"], said["chars"]) == (SECRET, len(SECRET))
    assert "hush" not in _without_answers(log.text)


@pytest.mark.parametrize("content", ["true", "false"])
async def test_the_setting_reaches_the_log_of_a_process(
    bridges: Bridges, project: Path, tmp_path: Path, content: str
) -> None:
    """And what comes in broken over stdio is not quoted, at debug."""
    settings = {"LOG_CONTENT": content, "LOG_LEVEL": "debug", "LOG_FORMAT": "json"}
    async with serving(bridges, tmp_path, **settings) as server:
        server.send_line(f'{{"jsonrpc": "2.0", "id": 7, "method": "{SECRET}-broken'.encode())
        server.send(8, "tools/call", {"name": "opencode", "arguments": f"{SECRET}-broken"})
        server.send(9, f"{SECRET}-broken", {"x": f"{SECRET}-broken"})
        server.notify("notifications/progress", {"progressToken": f"{SECRET}-broken"})
        server.call(1, "opencode", prompt=f"SAY:{SECRET}", cwd=str(project))
        answer = await told(server, 1)
        await leave(server, "term")
        text = server.log.read_text(encoding="utf-8")

    lines = our_lines(text)
    events = [line["event"] for line in lines]
    assert events[0] == "server_started"
    assert events.count("server_stopping") == 1
    assert "call_over" in events
    assert f"{SECRET}-broken" not in text
    if content == "false":
        assert SECRET not in text
    else:
        assert "content_is_logged" in events
        said = {line["event"]: line["text"] for line in lines if "text" in line}
        assert said == {"prompt": f"SAY:{SECRET}", "answer": SECRET}
        assert answer["sessionId"] in {line.get("session_id") for line in lines}

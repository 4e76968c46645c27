"""What a watch makes of the events of its session: which tool runs, what is written."""

from __future__ import annotations

import json

import pytest

from opencode_mcp.opencode.sse import Event
from opencode_mcp.opencode.tool_words import about_call
from opencode_mcp.opencode.watch import Watch
from tests.support.clocks import HandClock

Json = dict[str, object]


def event(kind: str, **properties: object) -> Event:
    frame = json.dumps({"payload": {"type": kind, "properties": properties}}).encode()
    return Event(kind, str(properties.get("sessionID")), frame)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def watch(clock: HandClock) -> Watch:
    return Watch("ses_1", clock)


def part(watch: Watch, session_id: str = "ses_1", **of: object) -> None:
    watch.take(session_id, event("message.part.updated", sessionID=session_id, part=of))


def tool(
    watch: Watch, status: str, call: str = "call_1", session_id: str = "ses_1", **state: object
) -> None:
    stated = {"status": status, **state}
    part(watch, session_id, type="tool", tool="bash", callID=call, state=stated)


def delta(watch: Watch, text: object, part_id: str = "prt_1", session_id: str = "ses_1") -> None:
    said = {"partID": part_id, "field": "text", "delta": text}
    watch.take(session_id, event("message.part.delta", sessionID=session_id, **said))


def test_a_running_tool_is_named_with_what_it_is_about_and_since_when(
    watch: Watch, clock: HandClock
) -> None:
    tool(watch, "pending", input={})
    clock.seconds = 3
    tool(watch, "running", input={"description": "run\n  tests"})
    clock.seconds = 8
    tool(watch, "running", input={"description": "run\n  tests"}, metadata={"output": "1"})
    (call,) = watch.running
    assert (call.tool, call.about, call.is_child, watch.ran_s(call)) == (
        "bash",
        "run tests",
        False,
        5,
    )


def test_calls_are_listed_oldest_first_until_they_end(watch: Watch) -> None:
    tool(watch, "running", "call_1", title="one")
    tool(watch, "running", "call_2", title="two")
    tool(watch, "running", "call_3", "ses_child", title="three")
    assert [(c.about, c.is_child) for c in watch.running] == [
        ("one", False),
        ("two", False),
        ("three", True),
    ]
    tool(watch, "completed", "call_1")
    tool(watch, "error", "call_2")
    assert [call.about for call in watch.running] == ["three"]
    assert watch.call_count == 2


def test_an_idle_session_runs_nothing_and_writes_nothing(watch: Watch) -> None:
    tool(watch, "running")
    tool(watch, "running", "call_2", "ses_child")
    delta(watch, "so far")
    watch.take("ses_child", event("session.idle", sessionID="ses_child"))
    assert (len(watch.running), watch.text_chars) == (1, 6)
    watch.take("ses_1", event("session.idle", sessionID="ses_1"))
    assert (watch.running, watch.text_chars) == ([], None)


def test_only_the_sessions_own_text_is_counted_and_only_while_it_is_written(watch: Watch) -> None:
    part(watch, id="prt_1", type="text", text="", time={"start": 1})
    delta(watch, "wörd")
    delta(watch, "s")
    delta(watch, "of a sub-agent", session_id="ses_child")
    assert watch.text_chars == 5
    part(watch, id="prt_1", type="text", text="wörds", time={"start": 1, "end": 2})
    assert watch.text_chars is None


def test_thoughts_are_no_answer(watch: Watch) -> None:
    """OpenCode: reasoning is streamed like text, in a part of its own (tried on 1.18.33)."""
    part(watch, id="prt_1", type="reasoning", text="", time={"start": 1})
    counts = []
    delta(watch, "let me see")
    counts.append(watch.text_chars)
    part(watch, id="prt_1", type="reasoning", text="let me see", time={"start": 1, "end": 2})
    delta(watch, "It is", "prt_2")
    counts.append(watch.text_chars)
    assert counts == [None, 5]


def test_it_is_quiet_since_the_last_thing_that_ended(watch: Watch, clock: HandClock) -> None:
    clock.seconds = 4
    assert watch.quiet_s == 4
    tool(watch, "running")
    clock.seconds = 10
    tool(watch, "completed")
    clock.seconds = 12
    assert watch.quiet_s == 2
    part(watch, id="prt_1", type="text", text="x", time={"start": 1, "end": 2})
    assert watch.quiet_s == 0


@pytest.mark.parametrize(
    "properties",
    [
        {"part": 7},
        {"part": {"type": "tool"}},
        {"part": {"type": "tool", "state": 7}},
        {"part": {"type": "tool", "state": {"status": ["running"], "input": 7}}},
        {"part": {"type": "text", "time": 7}},
        {"part": {"type": ["reasoning"]}},
        {"info": 7, "delta": 7, "partID": []},
        {},
    ],
)
def test_a_part_of_another_shape_does_no_harm(watch: Watch, properties: Json) -> None:
    for kind in ("message.part.updated", "message.part.delta", "message.updated"):
        watch.take("ses_1", event(kind, sessionID="ses_1", **properties))
    assert watch.running == []


@pytest.mark.parametrize(
    ("name", "state", "about"),
    [
        pytest.param("bash", {"input": {"command": "npm test"}}, "npm test", id="command"),
        pytest.param(
            "bash",
            {"input": {"command": "curl -H 'Auth: s3cret'", "description": "Ask it"}},
            "Ask it",
            id="a-description-comes-before-its-command",
        ),
        pytest.param(
            "edit", {"input": {"filePath": "/p/a.py", "oldString": "x"}}, "/p/a.py", id="f"
        ),
        pytest.param("grep", {"input": {"pattern": "def x", "path": "/p"}}, "def x", id="pattern"),
        pytest.param(
            "webfetch",
            {"input": {"url": "https://me:pw@example.org/a?token=s3cret#b"}},
            "example.org/a",
            id="an-address-without-what-may-be-secret",
        ),
        pytest.param("webfetch", {"input": {"url": "http://[x"}}, "", id="no-address"),
        pytest.param(
            "task",
            {"title": "t", "input": {"subagent_type": "explore", "description": "find uses"}},
            "explore: find uses",
            id="sub-agent",
        ),
        pytest.param("task", {"title": "t", "input": {}}, "t", id="sub-agent-without-a-name"),
        pytest.param("mcp_x", {"input": {"token": "s3cret"}}, "", id="unknown-inputs-are-not-told"),
        pytest.param("bash", {"title": " a\n b ", "input": 7}, "a b", id="title"),
        pytest.param("bash", {"title": "t" * 5000}, "t" * 300, id="long"),
    ],
)
def test_what_a_call_is_about(name: str, state: Json, about: str) -> None:
    assert about_call(name, state) == about

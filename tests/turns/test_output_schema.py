"""Turns with an `output-schema`: what is asked, what came of it, and that the turn stays a turn."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from opencode_mcp.clock import Clock
from opencode_mcp.engine.closing import Closing
from opencode_mcp.engine.structured import MAX_ANSWER_CHARS, Structures
from opencode_mcp.errors import OutputUnavailableError
from tests.store.make import a_turn
from tests.turns.reading import held, streaming
from tests.turns.schemas import SCHEMA, VALUE, block, told

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin

pytestmark = pytest.mark.usefixtures("patient")

OTHER_ENDS = {
    "none": ("SAY:I could not do it.", "missing", "NO_JSON"),
    "no-text": (
        'TOOL:{"name":"bash","args":{"command":"echo hi"}}\nTHEN\nBLANK',
        "missing",
        "NO_JSON",
    ),
    "does-not-fit": ('SAY:{"name": "hunter2"}', "invalid", "SCHEMA_MISMATCH"),
    "broken": ('SAY:{"name": "hunter2",}', "invalid", "MALFORMED_JSON"),
    "cut": ('SAY:{"name": "hunter2"\nFINISH:length', "invalid", "MALFORMED_JSON"),
}


def bodies(twin: Twin) -> list[dict[str, Any]]:
    """Return the bodies of the prompts that were sent."""
    return [seen.body for seen in twin.requests if seen.line.endswith("prompt_async") and seen.body]


async def test_an_answer_that_fits_is_given_as_a_value(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    answer = await bridge.start(block(VALUE), project, output_schema=SCHEMA)

    assert (answer.status, answer.is_error) == ("completed", False)
    assert told(answer) == {"structuredOutput": VALUE, "structuredOutputStatus": "valid"}
    assert answer.structured["output"]["structuredChars"] == len('{"name":"Zoë","count":3}')
    assert "It is done." in answer.text
    assert "[structured output: valid]" in answer.text
    assert told(await bridge.status(answer.session_id)) == told(answer)
    (sent,) = bodies(twin)
    assert json.dumps(SCHEMA, separators=(",", ":")) in sent["system"]
    assert "```" not in sent["parts"][0]["text"].replace("SAY:```", "")
    assert "format" not in sent


@pytest.mark.parametrize(("script", "status", "code"), OTHER_ENDS.values(), ids=OTHER_ENDS)
async def test_an_answer_that_does_not_fit_leaves_the_turn_completed(
    bridge: Bridge, project: Path, script: str, status: str, code: str
) -> None:
    answer = await bridge.start(script, project, output_schema=SCHEMA)

    assert (answer.status, answer.is_error) == ("completed", False)
    assert answer.structured["structuredOutputStatus"] == status
    assert answer.structured["structuredOutputError"]["code"] == code
    assert "structuredOutput" not in answer.structured
    assert "structuredChars" not in answer.structured["output"]
    assert f"[structured output: {status}] {code}" in answer.text
    assert "hunter2" not in answer.structured["structuredOutputError"]["message"]


async def test_each_turn_is_asked_for_its_own_schema_or_for_none(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    first = await bridge.start(block(VALUE), project, output_schema=SCHEMA)
    name, session_id = "opencode-reply", first.session_id
    plain = await bridge.call(name, sessionId=session_id, prompt=block(VALUE))
    other = await bridge.call(
        name, sessionId=session_id, prompt="SAY:[1, 2]", output_schema={"type": "array"}
    )

    assert told(plain) == {}
    assert "structured output" not in plain.text
    assert told(other) == {"structuredOutput": [1, 2], "structuredOutputStatus": "valid"}
    systems = [body.get("system") for body in bodies(twin)]
    assert systems[1] is None
    assert '{"type":"array"}' in str(systems[2])
    assert "count" not in str(systems[2])


async def test_instructions_of_the_caller_stand_before_the_schema(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    await bridge.start(
        block(VALUE),
        project,
        output_schema=SCHEMA,
        base_instructions="BASE",
        developer_instructions="DEVELOPER",
    )
    (sent,) = bodies(twin)
    places = [sent["system"].index(word) for word in ("BASE", "DEVELOPER", "JSON Schema")]
    assert places == sorted(places)


async def test_after_a_restart_the_same_turn_is_judged_the_same(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    first = await bridges.attached(ON_EXIT="keep")
    with held(twin):
        session_id = await first.begin(block(VALUE), project, output_schema=SCHEMA)
        await streaming(twin)
        await first.close()
    second = await bridges.attached(ON_EXIT="keep")
    answer = await second.call("opencode-status", sessionId=session_id, wait_seconds=30)
    await second.close()
    third = await bridges.attached()
    again = await third.status(session_id)

    assert answer.status == "completed"
    assert told(answer) == {"structuredOutput": VALUE, "structuredOutputStatus": "valid"}
    assert told(again) == told(answer)


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        pytest.param({"type": "hunter2"}, "#/type", id="no-schema"),
        pytest.param({"items": {"$ref": "http://hunter2/"}}, "#/items/$ref", id="remote"),
        pytest.param({"items": {"$ref": "#/$defs/hunter2"}}, "#/items/$ref", id="to-nowhere"),
        pytest.param({"pattern": "(hunter2"}, "#/pattern", id="pattern"),
    ],
)
async def test_a_bad_schema_is_refused_before_anything_is_sent(
    bridge: Bridge, twin: Twin, project: Path, schema: dict[str, Any], where: str
) -> None:
    ready = await bridge.start("SAY:ready", project)
    since = len(twin.requests)
    start = await bridge.call("opencode", prompt="SAY:x", cwd=str(project), output_schema=schema)
    reply = await bridge.call(
        "opencode-reply", sessionId=ready.session_id, prompt="SAY:x", output_schema=schema
    )

    for answer in (start, reply):
        assert (answer.is_error, answer.error) == (True, "INVALID_OUTPUT_SCHEMA")
        assert where in answer.text
        assert "hunter2" not in json.dumps(answer.structured)
        assert answer.structured["resendSafety"] == "not_submitted"
    assert [seen.line for seen in twin.requests[since:] if seen.line.startswith("POST")] == []
    assert list(twin.world.sessions) == [ready.session_id]


@pytest.mark.parametrize("schema", [True, "{}", [], 7])
async def test_what_is_no_object_is_no_schema(
    bridge: Bridge, twin: Twin, project: Path, schema: object
) -> None:
    answer = await bridge.call("opencode", prompt="x", cwd=str(project), output_schema=schema)
    assert answer.error == "INVALID_ARGUMENT"
    assert "output-schema" in answer.text
    assert twin.world.sessions == {}


async def test_a_large_value_is_left_out_whole_and_the_text_says_where_it_is(
    bridge: Bridge, project: Path
) -> None:
    value = [{"n": n, "text": "some words"} for n in range(2000)]
    answer = await bridge.start(block(value), project, output_schema={"type": "array"})

    assert answer.structured["structuredOutputStatus"] == "valid"
    assert "structuredOutput" not in answer.structured
    assert "structuredOutput" in answer.structured["omittedFields"]
    assert answer.structured["truncated"] is True
    chars = answer.structured["output"]["structuredChars"]
    assert chars == len(json.dumps(value, separators=(",", ":")))
    assert "opencode-output with this id, turn 1, section structured-output" in answer.text
    pages = ""
    while len(pages) < chars:
        page = await bridge.call(
            "opencode-output",
            sessionId=answer.session_id,
            turn=1,
            section="structured-output",
            offset=len(pages),
        )
        pages += page.text
    assert json.loads(pages) == value


async def test_a_value_as_deep_as_is_taken_passes_through_a_pipe(
    bridges: Bridges, project: Path
) -> None:
    """FastMCP: what writes our results refuses values that are nested much deeper."""
    bridge = await bridges.attached_process()
    value: list[Any] = [10**300, "é", 1e300]
    for _ in range(99):
        value = [value]
    answer = await bridge.start(block(value), project, output_schema={})
    assert told(answer) == {"structuredOutput": value, "structuredOutputStatus": "valid"}


async def test_a_turn_cut_short_is_judged_by_what_it_said_and_by_nothing_else(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    talking = await bridge.begin("SLOW:1000,50", project, output_schema=SCHEMA)
    await streaming(twin)
    cut = await bridge.call("opencode-cancel", sessionId=talking, wait_ms=10_000)
    silent = await bridge.begin("HANG", project, output_schema=SCHEMA)
    await streaming(twin)
    ended = await bridge.call("opencode-cancel", sessionId=silent, wait_ms=10_000)

    assert (cut.status, ended.status) == ("cancelled", "cancelled")
    assert cut.structured["structuredOutputStatus"] == "missing"
    assert told(ended) == {}


async def test_a_turn_that_runs_tells_nothing_of_its_schema(bridge: Bridge, project: Path) -> None:
    answer = await bridge.start("SLOW:1000,50", project, output_schema=SCHEMA, wait_seconds=0)
    assert answer.status == "running"
    assert told(answer) == {}


async def test_the_whole_value_can_be_had_or_the_reason_why_not() -> None:
    closing = Closing(Clock())
    structures = Structures(closing)
    asked = replace(a_turn(), output_schema="{}")

    assert await structures.structured_text(asked, 'so {"a": "b"}') == '{"a":"b"}'
    with pytest.raises(OutputUnavailableError, match="NO_JSON"):
        await structures.structured_text(asked, "so")
    with pytest.raises(OutputUnavailableError, match="NO_JSON"):
        await structures.structured_text(asked, " ")
    with pytest.raises(OutputUnavailableError, match="ANSWER_TOO_LARGE"):
        await structures.structured_text(asked, "x" * (MAX_ANSWER_CHARS + 1))
    with pytest.raises(OutputUnavailableError, match="without output-schema"):
        await structures.structured_text(a_turn(), '{"a": 1}')
    await structures.close()

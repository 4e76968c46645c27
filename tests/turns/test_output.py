"""`opencode-output`: what any turn left, page by page, as long as its session is tracked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.opencode import whole_messages
from tests.support.polling import eventually
from tests.turns.outputs import echo, output, pages, tool, whole

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support.bridge import Bridge
    from tests.support.bridges import Bridges
    from tests.twin import Twin

#: of characters that take one, two and four bytes, and of which JSON escapes some
_LONG = 'word "é" 😀\t' * 9_000


async def test_an_answer_of_any_length_is_there_as_a_whole(bridge: Bridge, project: Path) -> None:
    """Case 30."""
    answer = await bridge.start(f"SAY:{_LONG}", project)
    session_id = answer.session_id
    found = await pages(bridge, session_id)
    first = found[0].structured

    assert answer.structured["truncated"] is True
    assert "opencode-output with this id and turn 1" in answer.text
    assert "opencode-output with this id and turn 1" in answer.structured["hint"]
    assert "".join(page.text for page in found) == _LONG.strip()
    assert len(found) > 4
    assert (first["kind"], first["status"], first["section"]) == ("output", "ok", "answer")
    assert (first["total"], first["partial"]) == (len(_LONG.strip()), False)
    assert (first["turn"], first["turnId"]) == (1, answer.structured["turnId"])
    assert len({page.structured["snapshotId"] for page in found}) == 1


async def test_pages_by_offset_alone_are_the_same(bridge: Bridge, project: Path) -> None:
    session_id = (await bridge.start(f"SAY:{_LONG}", project)).session_id
    one = await output(bridge, session_id, offset=70_001, limit=5)
    assert one.text == _LONG[70_001:70_006]
    assert (one.structured["nextOffset"], one.structured["hasMore"]) == (70_006, True)


async def test_an_answer_that_was_not_cut_does_not_send_its_reader_elsewhere(
    bridge: Bridge, project: Path
) -> None:
    answer = await bridge.start("SAY:short", project)
    assert "opencode-output" not in answer.text
    assert (await output(bridge, answer.session_id)).text == "short"


async def test_the_log_of_tool_calls_has_every_input_and_output(
    bridge: Bridge, project: Path
) -> None:
    words = [f"{n}-" + "x" * 3_000 for n in range(40)]
    steps = [echo(word) for word in words]
    answer = await bridge.start("\nTHEN\n".join([*steps, "SAY:the end"]), project)
    found = await pages(bridge, answer.session_id, section="tool-calls")
    log = "".join(page.text for page in found)

    assert len(found) > 5
    assert log.count("bash · completed · ") == 40
    for word in words:
        assert f'"command": "echo {word}"' in log
        assert f"\noutput:\n{word}\n" in log
    listed = [call for page in found for call in page.structured["toolCalls"]]
    assert [call["title"][:9] for call in listed] == [f"echo {w}"[:9] for w in words]
    assert {page.structured["toolCallCount"] for page in found} == {40}


async def test_a_turn_without_tool_calls_has_an_empty_log(bridge: Bridge, project: Path) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    log = await output(bridge, session_id, section="tool-calls")
    assert (log.is_error, log.structured["total"], log.structured["toolCalls"]) == (False, 0, [])


async def test_a_call_that_was_cut_short_is_logged_as_cancelled(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    script = tool("bash", command="echo begun; sleep 60", description="long")
    session_id = await bridge.begin(f"SAY:on it\n{script}", project)

    async def runs() -> bool:
        return bool(twin.shells)

    await eventually(runs, what="the command runs")
    await bridge.call("opencode-cancel", sessionId=session_id, wait_ms=10_000)
    log = await output(bridge, session_id, section="tool-calls")
    said = await output(bridge, session_id)

    assert log.text.startswith("#1 bash · cancelled")
    assert "reason: the turn was cancelled" in log.text
    assert "\noutput:\nbegun\n" in log.text
    assert log.structured["toolCalls"][0]["status"] == "cancelled"
    assert (said.text, said.structured["partial"]) == ("on it", True)


async def test_each_turn_has_its_own_output_however_many_came_after_it(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    """Also after a prompt of somebody else's, which is no turn of ours (facts 2.8)."""
    answer = await bridge.start(f"{echo('one')}\nTHEN\nSAY:first", project)
    session_id = answer.session_id
    for word in ("second", "third"):
        script = f"{echo(word)}\nTHEN\nSAY:{word}"
        await bridge.call("opencode-reply", sessionId=session_id, prompt=script)
    await _prompt_elsewhere(twin, session_id, f"{echo('foreign')}\nTHEN\nSAY:not ours")
    calls = "\nTHEN\n".join(f"{echo(str(n))}" for n in range(130))
    await bridge.call("opencode-reply", sessionId=session_id, prompt=f"{calls}\nTHEN\nSAY:fourth")

    assert [(await output(bridge, session_id, n)).text for n in (1, 2, 3, 4)] == [
        "first",
        "second",
        "third",
        "fourth",
    ]
    logs = [await whole(bridge, session_id, n, section="tool-calls") for n in (1, 2, 3, 4)]
    assert [log.count("bash · completed") for log in logs] == [1, 1, 1, 130]
    assert "one" in logs[0]
    assert not any("foreign" in log for log in logs)


async def _prompt_elsewhere(twin: Twin, session_id: str, script: str) -> None:
    session = twin.world.sessions[session_id]
    parts = [{"type": "text", "text": script}]
    twin.runs.write_prompt(session, {"parts": parts}, "msg_of_somebody_else")
    await twin.runs.begin(session).task


async def test_an_output_is_the_same_after_a_restart_and_in_another_process(
    bridges: Bridges, twin: Twin, project: Path
) -> None:
    """And so is its snapshot: it is what it says, wherever it is read."""
    first = await bridges.attached()
    session_id = (await first.start(f"{echo('x')}\nTHEN\nSAY:{_LONG}", project)).session_id
    before = await output(first, session_id)
    await first.close()
    await twin.restart()
    second = await bridges.attached()
    pinned = {"offset": before.structured["nextOffset"], "limit": 7}
    after = await output(second, session_id, snapshot_id=before.structured["snapshotId"], **pinned)

    assert (await output(second, session_id)).text == before.text
    assert after.text == _LONG[pinned["offset"] : pinned["offset"] + 7]
    assert "echo x" in (await output(second, session_id, section="tool-calls")).text


async def test_what_was_read_once_is_not_read_again(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = (await bridge.start(f"SAY:{_LONG}", project)).session_id
    first = await output(bridge, session_id)
    again = await output(bridge, session_id)
    since = len(twin.requests)
    snapshot = first.structured["snapshotId"]
    pinned = await output(bridge, session_id, offset=50, limit=9, snapshot_id=snapshot)
    by_name = await output(bridge, session_id, offset=50, limit=9)

    assert twin.lines(since) == []
    assert pinned.text == by_name.text == _LONG[50:59]
    assert again.structured["observedAt"] == by_name.structured["observedAt"]


async def test_a_snapshot_pins_what_goes_on_changing(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path
) -> None:
    """From memory, or not at all: never a page of something else."""
    script = f"SAY:{'early ' * 100}\n{echo('x')}\nTHEN\nSAY:late\n{echo('y')}\nTHEN\nHANG"
    session_id = await bridge.begin(f"{echo('w')}\nTHEN\n{script}", project)

    async def at(step: int) -> bool:
        return len(twin.model.requests) == step

    await eventually(lambda: at(4), what="it hangs")
    early = await output(bridge, session_id, limit=2)
    pin = early.structured["snapshotId"]
    await bridge.call("opencode-cancel", sessionId=session_id, wait_ms=10_000)
    await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:x")
    message = twin.world.messages(session_id)[3]
    for part in message["parts"]:
        part["text"] = "quite another text" if part["type"] == "text" else None
    newest = await output(bridge, session_id)
    kept = await output(bridge, session_id, offset=2, limit=2, snapshot_id=pin)
    other = await bridges.attached()
    lost = await output(other, session_id, offset=2, limit=2, snapshot_id=pin)
    anew = await output(other, session_id)

    assert (early.text, kept.text) == ("la", "te")
    assert (lost.is_error, lost.error) == (True, "SNAPSHOT_EXPIRED")
    assert newest.text == anew.text == "quite another text"
    assert newest.structured["snapshotId"] == anew.structured["snapshotId"] != pin


async def test_a_snapshot_is_of_one_section_of_one_turn(bridge: Bridge, project: Path) -> None:
    session_id = (await bridge.start(f"{echo('x')}\nTHEN\nSAY:one", project)).session_id
    await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:two")
    pin = (await output(bridge, session_id)).structured["snapshotId"]
    other_turn = await output(bridge, session_id, 2, snapshot_id=pin)
    other_section = await output(bridge, session_id, section="tool-calls", snapshot_id=pin)
    assert {other_turn.error, other_section.error} == {"SNAPSHOT_EXPIRED"}


async def test_why_a_call_failed_is_in_the_log_as_a_whole(
    bridge: Bridge, bridges: Bridges, twin: Twin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a compiler's complaint may be all that a failed call has to say."""
    error = "complaint " * 900 + "THE END"
    session_id = (await bridge.start(f"{echo('x')}\nTHEN\nSAY:y", project)).session_id
    parts = [part for message in twin.world.messages(session_id) for part in message["parts"]]
    (call,) = [part for part in parts if part["type"] == "tool"]
    call["state"] = {"status": "error", "input": call["state"]["input"], "error": error}
    log = await whole(bridge, session_id, section="tool-calls")
    assert f"reason: {error}\n" in log
    assert (await output(bridge, session_id, section="tool-calls")).structured["partial"] is False

    monkeypatch.setattr(whole_messages, "MAX_DETAIL_CHARS", 5_000)
    cut = await output(await bridges.attached(), session_id, section="tool-calls")
    assert ("THE END" in cut.text, cut.structured["partial"]) == (False, True)


async def test_a_turn_that_was_compacted_in_its_middle_is_one_turn(
    bridge: Bridge, twin: Twin, project: Path
) -> None:
    session_id = (await bridge.start("SAY:x", project)).session_id
    twin.compact_next(session_id)
    script = f"{echo('one')}\nTHEN\n{echo('two')}\nTHEN\nSAY:after all"
    reply = await bridge.call("opencode-reply", sessionId=session_id, prompt=script)
    said = await output(bridge, session_id, 2)
    log = await output(bridge, session_id, 2, section="tool-calls")

    assert said.text in reply.text
    assert log.structured["toolCallCount"] == reply.structured["toolCallCount"]
    assert "echo one" in log.text

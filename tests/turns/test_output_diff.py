"""`opencode-output` with section `diff`: OpenCode writes it late, and only in git folders."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.engine import outputs
from tests.support.polling import eventually
from tests.turns.outputs import output, pages, tool, whole
from tests.turns.reading import streaming

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Bridge
    from tests.twin import Twin
    from tests.twin.shapes import Json


@pytest.fixture
def repository(project: Path) -> Path:
    """Give a folder that OpenCode takes for one in git."""
    (project / ".git").mkdir()
    return project


def write(name: str, text: str) -> str:
    return tool("write", filePath=name, content=text)


async def test_a_stat_lists_the_files_and_a_patch_shows_one_of_them(
    bridge: Bridge, repository: Path
) -> None:
    (repository / "old.txt").write_text("one\ntwo\n", encoding="utf-8")
    script = "\n".join([write("new.txt", "a\nb\n"), write("old.txt", "one\n2\n"), "THEN", "SAY:ok"])
    session_id = (await bridge.start(script, repository)).session_id
    stat = await output(bridge, session_id, section="diff")
    patch = await output(bridge, session_id, section="diff", diff_view="patch", file_index=1)
    both = await whole(bridge, session_id, section="diff", diff_view="patch", limit=10)
    beyond = await output(bridge, session_id, section="diff", diff_view="patch", file_index=2)

    assert stat.text == "0 added +2 -0 new.txt\n1 modified +1 -1 old.txt\n"
    assert [file["file"] for file in stat.structured["diff"]] == ["new.txt", "old.txt"]
    assert (stat.structured["total"], stat.structured["partial"]) == (2, False)
    assert "-two\n+2" in patch.text
    assert "new.txt" not in patch.text
    assert patch.structured["diff"] == [stat.structured["diff"][1]]
    assert patch.structured["snapshotId"] == stat.structured["snapshotId"]
    assert patch.text in both
    assert both.startswith("Index: new.txt")
    assert (beyond.error, "0 to 1" in beyond.text) == ("INVALID_ARGUMENT", True)


async def test_each_turn_has_its_own_diff(bridge: Bridge, repository: Path) -> None:
    session_id = (await bridge.start(f"{write('a', 'x')}\nTHEN\nSAY:1", repository)).session_id
    reply = {"sessionId": session_id, "prompt": f"{write('b', 'x')}\nTHEN\nSAY:2"}
    await bridge.call("opencode-reply", **reply)
    await bridge.call("opencode-reply", **{**reply, "prompt": "SAY:3"})
    found = [await output(bridge, session_id, n, section="diff") for n in (1, 2, 3)]
    names = [[file["file"] for file in one.structured["diff"]] for one in found]
    assert names == [["a"], ["b"], []]


async def test_a_diff_of_many_files_is_paged_by_files(bridge: Bridge, repository: Path) -> None:
    calls = "\n".join(write(f"f{n}.txt", f"{n}\n") for n in range(60))
    session_id = (await bridge.start(f"{calls}\nTHEN\nSAY:ok", repository)).session_id
    found = await pages(bridge, session_id, section="diff", limit=25)
    assert [len(page.structured["diff"]) for page in found] == [25, 25, 10]
    assert {page.structured["total"] for page in found} == {60}
    assert len({file["file"] for page in found for file in page.structured["diff"]}) == 60


async def test_a_diff_that_is_written_late_is_waited_for(
    bridge: Bridge, twin: Twin, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.2 s after idle (tried on 1.18.33): until then it is that of an earlier step, or empty."""
    monkeypatch.setattr(outputs, "DIFF_SETTLE_S", 60.0)
    session_id = (await bridge.start(f"{write('a', 'x')}\nTHEN\nSAY:1", repository)).session_id
    prompt = twin.world.messages(session_id)[0]
    summary = _without_diffs(prompt)
    since = len(twin.requests)
    call = asyncio.create_task(output(bridge, session_id, section="diff"))

    async def looked_again() -> bool:
        return f"GET /session/{session_id}/message/{prompt['info']['id']}" in twin.lines(since)

    await eventually(looked_again, what="it is looked for again")
    prompt["info"]["summary"] = summary
    found = await call
    assert [file["file"] for file in found.structured["diff"]] == ["a"]
    assert found.structured["partial"] is False


def _without_diffs(prompt: Json) -> object:
    summary = prompt["info"]["summary"]
    prompt["info"] = {**prompt["info"], "summary": {"diffs": []}}
    return summary


@pytest.mark.parametrize("told_by", ["patch", "tool"])
async def test_a_diff_that_lacks_what_a_step_changed_is_partial(
    bridge: Bridge,
    twin: Twin,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    told_by: str,
) -> None:
    """As of a step that was cut: its parts name the file, the diff never does (tried)."""
    monkeypatch.setattr(outputs, "DIFF_SETTLE_S", 0.0)
    session_id = (await bridge.start(f"{write('a', 'x')}\nTHEN\nSAY:1", repository)).session_id
    prompt, step, *_ = twin.world.messages(session_id)
    step["parts"] = [part for part in step["parts"] if part["type"] == told_by]
    summary = _without_diffs(prompt)
    early = await output(bridge, session_id, section="diff")
    prompt["info"]["summary"] = summary
    late = await output(bridge, session_id, section="diff")

    assert (early.structured["total"], early.structured["partial"]) == (0, True)
    assert (late.structured["total"], late.structured["partial"]) == (1, False)


async def test_a_diff_that_was_never_written_is_told_as_such(
    bridge: Bridge, twin: Twin, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "DIFF_SETTLE_S", 0.0)
    session_id = (await bridge.start("SAY:1", repository)).session_id
    del twin.world.messages(session_id)[0]["info"]["summary"]
    found = await output(bridge, session_id, section="diff")
    assert (found.is_error, found.error) == (True, "OUTPUT_UNAVAILABLE")


async def test_a_running_turns_diff_is_what_it_has_so_far(
    bridge: Bridge, twin: Twin, repository: Path
) -> None:
    session_id = await bridge.begin(f"{write('a', 'x')}\nTHEN\nHANG", repository)
    await streaming(twin)

    async def told() -> bool:
        info = twin.world.messages(session_id)[0]["info"]
        return bool(info.get("summary", {}).get("diffs"))

    await eventually(told, what="OpenCode tells the first step's change")
    found = await output(bridge, session_id, section="diff")
    assert [file["file"] for file in found.structured["diff"]] == ["a"]
    assert found.structured["partial"] is True


async def test_before_a_running_turn_tells_of_changes_its_diff_is_not_ready(
    bridge: Bridge, twin: Twin, repository: Path
) -> None:
    session_id = await bridge.begin("HANG", repository)
    await streaming(twin)
    twin.world.messages(session_id)[0]["info"].pop("summary", None)
    found = await output(bridge, session_id, section="diff")
    assert (found.is_error, found.error) == (True, "OUTPUT_NOT_READY")
    assert "opencode-status" in found.text


async def test_a_folder_without_git_has_no_diff(bridge: Bridge, project: Path) -> None:
    session_id = (await bridge.start(f"{write('a', 'x')}\nTHEN\nSAY:1", project)).session_id
    found = await output(bridge, session_id, section="diff")
    assert (found.is_error, found.error) == (True, "OUTPUT_UNAVAILABLE")
    assert "git" in found.text

"""What turns left, read in full from a real OpenCode, after a restart of ours and of its own."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.real.support.processes import all_gone
from tests.real.support.scripts import ENDLESS, bash, write
from tests.support.polling import eventually
from tests.turns.outputs import output, pages, whole

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.bridges import RealBridges
    from tests.real.support.sandbox import Sandbox
    from tests.real.support.witness import Witness
    from tests.support.bridge import Bridge

_MEGABYTE = "".join(f'line {n} of a long answer: é 😀 \\ " · ' for n in range(27_000))
_STEPS, _CALLS = 4, 50
#: 10 renamed (each a deletion and an addition), 10 deleted, 10 modified, 15 new, 1 binary
_CHANGE = (
    "for i in 0 1 2 3 4 5 6 7 8 9; do git mv f0$i.txt moved$i.txt; rm f1$i.txt;"
    " echo more >> f2$i.txt; done;"
    " for i in 0 1 2 3 4 5 6 7 8 9 a b c d e; do echo $i > new$i.txt; done;"
    " head -c 3000 /dev/zero > bin.dat"
)
_EXPECTED = {
    **{f"f0{n}.txt": "deleted" for n in range(10)},
    **{f"moved{n}.txt": "added" for n in range(10)},
    **{f"f1{n}.txt": "deleted" for n in range(10)},
    **{f"f2{n}.txt": "modified" for n in range(10)},
    **{f"new{n}.txt": "added" for n in "0123456789abcde"},
    "bin.dat": "added",
}


@pytest.fixture
def repository(untouched: Path) -> Path:
    """Give a folder in git with 30 files."""
    for n in range(30):
        (untouched / f"f{n:02}.txt").write_text(f"one\n{n}\nthree\n", encoding="utf-8")
    for command in ("init -q", "add -A", "commit -qm begin"):
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"]
        subprocess.run(["git", *identity, *command.split()], cwd=untouched, check=True)
    return untouched


async def test_all_that_turns_left_is_there_in_full_after_a_restart(
    bridges: RealBridges, sandbox: Sandbox, repository: Path
) -> None:
    """Case 30. 1 MB of answer, 200 tool calls, a diff over 50 files: after a restart of both."""
    first = await bridges.managed_process(sandbox)
    session_id = (await first.start(f"SAY:{_MEGABYTE}", repository, wait_seconds=120)).session_id
    calls = [f"{n}-{m}" for n in range(_STEPS) for m in range(_CALLS)]
    steps = ["\n".join(bash(f"echo call {c}") for c in calls[i::_STEPS]) for i in range(_STEPS)]
    reply = {"sessionId": session_id, "wait_seconds": 120}
    script = "\nTHEN\n".join([*steps, "SAY:many calls"])
    many = await first.call("opencode-reply", prompt=script, **reply)
    changed = await first.call(
        "opencode-reply", prompt=f"{bash(_CHANGE)}\nTHEN\nSAY:changed", **reply
    )
    assert [many.status, changed.status] == ["completed", "completed"]
    await first.close()
    await first.dead()
    await all_gone(sandbox.home)
    second = await bridges.managed(sandbox)

    assert await whole(second, session_id, 1, limit=40_000) == _MEGABYTE.strip()
    log = await pages(second, session_id, 2, section="tool-calls")
    text = "".join(page.text for page in log)
    assert all(f"\noutput:\ncall {call}\n" in text for call in calls)
    assert sum(len(page.structured["toolCalls"]) for page in log) == len(calls)
    stat = await pages(second, session_id, 3, section="diff", limit=20)
    found = {f["file"]: f["status"] for page in stat for f in page.structured["diff"]}
    assert found == _EXPECTED
    await _patches_are_right(second, session_id, list(found))
    partial = {page.structured["partial"] for page in [*log, *stat]}
    assert partial == {False}


async def _patches_are_right(bridge: Bridge, session_id: str, names: list[str]) -> None:
    patch = {"section": "diff", "diff_view": "patch"}

    async def of(name: str) -> str:
        return (await output(bridge, session_id, 3, **patch, file_index=names.index(name))).text

    assert "+more\n" in await of("f20.txt")
    assert "-one\n" in await of("f10.txt")
    assert "+one\n" in await of("moved0.txt")
    assert "binary" in await of("bin.dat")
    everything = await whole(bridge, session_id, 3, **patch, limit=1_000)
    assert all(f"Index: {name}\n" in everything for name in names)


async def test_right_after_a_turn_its_diff_is_whole(bridge: Bridge, repository: Path) -> None:
    """OpenCode writes it 0.2 s after the end (tried): whoever asks sooner gets it all the same."""
    script = f"{write('new.txt', 'x')}\nTHEN\nSAY:done"
    session_id = (await bridge.start(script, repository)).session_id
    diff = await output(bridge, session_id, section="diff")
    assert [file["file"] for file in diff.structured["diff"]] == ["new.txt"]
    assert diff.structured["partial"] is False


async def test_what_a_stopped_turn_left_is_there_and_called_partial(
    bridge: Bridge, witness: Witness, repository: Path
) -> None:
    script = f"SAY:on it\n{write('new.txt', 'x')}\nTHEN\n{ENDLESS}"
    session_id = await bridge.begin(script, repository)

    async def wrote() -> bool:
        log = await output(bridge, session_id, section="tool-calls")
        return bool(log.structured["toolCallCount"]) and "· completed" in log.text

    await eventually(wrote, what="the file is written")
    await witness.streaming(session_id)  # the next step: what the first one changed is written down
    running = await output(bridge, session_id)
    await bridge.call("opencode-cancel", sessionId=session_id, wait_ms=20_000)
    stopped = await output(bridge, session_id)
    diff = await output(bridge, session_id, section="diff")

    assert running.structured["partial"] is True
    assert stopped.structured["partial"] is True
    assert running.text == "on it"
    assert [file["file"] for file in diff.structured["diff"]] == ["new.txt"]


async def test_a_folder_without_git_has_no_diff_and_says_so(bridge: Bridge, project: Path) -> None:
    session_id = (await bridge.start(f"{write('x.txt', 'x')}\nTHEN\nSAY:x", project)).session_id
    diff = await output(bridge, session_id, section="diff")
    log = await output(bridge, session_id, section="tool-calls")
    assert (diff.error, "git" in diff.text) == ("OUTPUT_UNAVAILABLE", True)
    assert "x.txt" in log.text

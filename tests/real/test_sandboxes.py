"""What the sandboxes deny, on the real OpenCode: to an agent and to its sub-agents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.real.support.sandbox import write_project
from tests.real.support.scripts import bash, subagent, tool, write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.witness import Witness
    from tests.support.bridge import Bridge

#: all that a project can say to let its agents do as they like
_GENEROUS = {
    "$schema": "https://opencode.ai/config.json",  # OpenCode writes it in where it is missing
    "permission": {"edit": "allow", "bash": "allow", "external_directory": "allow"},
    "agent": {
        name: {"permission": {"edit": "allow", "bash": "allow", "external_directory": "allow"}}
        for name in ("build", "general", "explore")
    },
}

_SUBAGENTS = ("general", "explore")


def meddling(folder: Path) -> str:
    """Try all of OpenCode's ways to change a folder, at once."""
    patch = "*** Begin Patch\n*** Add File: patched.txt\n+x\n*** End Patch"
    readme = str(folder / "README.md")
    return "\n".join(
        [
            write(folder / "written.txt", "x"),
            tool("edit", filePath=readme, oldString="A project", newString="No project"),
            tool("apply_patch", patchText=patch),
            bash(f"touch {folder}/touched.txt"),
        ]
    )


async def test_read_only_changes_nothing_whatever_the_project_allows(
    bridge: Bridge, witness: Witness, tmp_path: Path
) -> None:
    """OpenCode: a session's rules come last, and its denies are handed down to sub-agents."""
    folder = write_project(tmp_path / "generous", _GENEROUS)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    tried = meddling(folder)
    scripts = [tried, *(f"{subagent(tried, name)}\nTHEN\nSAY:done" for name in _SUBAGENTS)]
    for script in scripts:
        answer = await bridge.start(script, folder, sandbox="read-only", wait_seconds=60)
        children = await witness.children(answer.session_id)
        members = {answer.session_id, *(str(child["id"]) for child in children)}
        offered = {
            tool
            for request in witness.model.requests
            if request.session_id in members
            for tool in request.tools
        }

        assert answer.status == "completed", answer.text
        assert len(children) == (script != tried), "the sub-agent did run"
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        assert "read" in offered
        assert not {"write", "edit", "apply_patch", "bash"} & offered
    reading = tool("read", filePath=str(folder / "README.md"))
    read = await bridge.start(reading, folder, sandbox="read-only", wait_seconds=60)
    assert read.structured["toolCalls"][0]["status"] == "completed", "reading is what it is for"


async def test_workspace_write_keeps_paths_outside_out(
    bridge: Bridge, witness: Witness, project: Path, tmp_path: Path
) -> None:
    """Case B13: a path outside asks by default, and no rule for bash covers it."""
    outside = tmp_path / "outside.txt"
    outside.write_text("secret\n", encoding="utf-8")
    script = "\n".join(
        [
            tool("read", filePath=str(outside)),
            bash(f"cat {outside}"),
            write(tmp_path / "written.txt", "x"),
            write(project / "inside.txt", "x"),
        ]
    )
    answer = await bridge.start(script, project, approval_policy="caller", wait_seconds=60)
    deeper = await bridge.start(
        subagent(write(tmp_path / "deeper.txt", "x")) + "\nTHEN\nSAY:done",
        project,
        approval_policy="caller",
        wait_seconds=60,
    )

    assert (answer.status, deeper.status) == ("completed", "completed"), answer.text
    states = [call["status"] for call in answer.structured["toolCalls"]]
    assert states == ["error", "error", "error", "completed"]
    assert (project / "inside.txt").exists()
    assert not (tmp_path / "written.txt").exists()
    assert not (tmp_path / "deeper.txt").exists()
    assert not await witness.permissions(project), "denied, not asked"


async def test_full_access_asks_for_a_path_outside_and_reject_ends_it(
    bridge: Bridge, witness: Witness, project: Path, tmp_path: Path
) -> None:
    """Case B13: the call returns what it needs, and answering reject ends the turn."""
    outside = tmp_path / "outside.txt"
    outside.write_text("secret\n", encoding="utf-8")
    told = await bridge.start(
        bash(f"cat {outside}"),
        project,
        sandbox="danger-full-access",
        approval_policy="caller",
        wait_seconds=60,
    )
    (pending,) = told.structured["pendingApprovals"]
    assert pending["permission"] == "external_directory"
    await bridge.call(
        "opencode-approve",
        sessionId=told.session_id,
        approvalId=pending["id"],
        decision="reject",
    )
    after = await bridge.settled(told.session_id)

    assert "secret" not in json.dumps(await witness.messages(told.session_id))
    assert after.structured["executionState"] == "stopped"
    assert not await witness.permissions(project)


async def test_a_session_only_ever_has_rules_that_deny(
    bridge: Bridge, witness: Witness, project: Path
) -> None:
    for sandbox in ("read-only", "workspace-write", "danger-full-access"):
        session_id = (await bridge.start("SAY:ready", project, sandbox=sandbox)).session_id
        session = await witness.session(session_id)
        assert session is not None
        rules = session.get("permission", [])
        assert {rule["action"] for rule in rules} == {"deny"}
        assert {rule["pattern"] for rule in rules} == {"*"}

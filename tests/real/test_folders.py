"""A managed OpenCode over a long life: what it keeps of folders that nobody uses any more."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tests.real.support.sandbox import write_project
from tests.real.support.scripts import ENDLESS
from tests.support.polling import eventually

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from opencode_mcp.cli.scripted_model import ScriptedModel
    from tests.real.support.bridges import RealBridges
    from tests.real.support.sandbox import Sandbox


async def test_folders_without_sessions_are_let_go_of_and_can_be_used_again(  # noqa: PLR0913, PLR0917 - fixtures
    bridges: RealBridges,
    sandbox: Sandbox,
    model: ScriptedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Case 41; a turn that runs in another folder does not notice."""
    monkeypatch.setattr("opencode_mcp.engine.folders.UNUSED_S", 1.0)
    busy, empty = (write_project(tmp_path / name) for name in ("busy", "empty"))
    bridge = await bridges.managed(sandbox)
    running = await bridge.begin(ENDLESS, busy)
    with caplog.at_level(logging.DEBUG, logger="opencode_mcp.engine.folders"):
        ended = (await bridge.start("SAY:x", empty)).session_id
        assert (await bridge.end(ended)).status == "ended"

        async def let_go() -> set[str]:
            return {vars(line)["directory"] for line in caplog.records if "directory" in vars(line)}

        assert await eventually(let_go, what="a folder is let go of") == {str(empty)}
    again = await bridge.start("SAY:works", empty)
    assert (again.status, "works" in again.text) == ("completed", True), again.text
    assert (await bridge.status(running)).status == "running"
    assert [one for one in model.open_streams if one.session_id == running]
    assert (await bridge.end(running)).status == "ended"

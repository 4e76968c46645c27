"""With a URL set, no OpenCode is ever started beside the one that the operator meant (case B21)."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.bridges import Bridges

#: leaves a mark wherever it is started
_TELLTALE = """#!/bin/sh
touch "$0.started"
"""


@pytest.fixture
def telltale(tmp_path: Path) -> Path:
    """Give an OpenCode that can be seen to have been started."""
    program = tmp_path / "bin" / "opencode"
    program.parent.mkdir()
    program.write_text(_TELLTALE, encoding="utf-8")
    program.chmod(0o700)
    return program


async def test_a_url_at_which_nobody_listens_starts_none_and_is_named(
    bridges: Bridges, telltale: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case B21: "nothing listens there" does not mean "there is no OpenCode"."""
    monkeypatch.setenv("PATH", f"{telltale.parent}:/usr/bin:/bin")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    bridge = await bridges.attached(
        SERVER_URL=url, OPENCODE_BIN=str(telltale), REQUEST_TIMEOUT_SECONDS="2"
    )
    session = await bridge.call("opencode", prompt="SAY:x", cwd=str(project))
    listed = await bridge.call("opencode-status")
    assert session.error == "OPENCODE_UNAVAILABLE"
    assert url in session.text
    assert "OPENCODE_MCP_SERVER_URL" in session.text
    assert session.structured["resendSafety"] == "not_submitted"
    assert listed.structured["total"] == 0
    assert not Path(f"{telltale}.started").exists()
    assert not Path(f"{bridges.database}.instances").exists()

"""The README's first command, as `make demo` runs it: a person's first look at the program."""

from __future__ import annotations

import asyncio
import subprocess
from typing import TYPE_CHECKING

from tests.real.support.processes import processes_of_home
from tests.real.support.sandbox import opencode_binary
from tests.support.bridges import bare_env
from tests.support.process_bridge import COMMAND

if TYPE_CHECKING:
    from pathlib import Path

_LIMIT_S = 120


async def test_the_demo_does_the_main_job_and_leaves_nothing(tmp_path: Path) -> None:
    """Start, reply, list, end on an OpenCode of its own, in a home where nothing was before."""
    home = tmp_path / "home"
    home.mkdir()
    env = bare_env(home) | {"OPENCODE_MCP_OPENCODE_BIN": str(opencode_binary())}
    run = await asyncio.to_thread(
        subprocess.run,
        [str(COMMAND), "demo"],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "README.md" in run.stdout, "the agent's answer is shown"
    assert "ended" in run.stdout
    assert processes_of_home(home) == []

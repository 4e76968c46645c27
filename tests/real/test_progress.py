"""What a person sees while a turn of the real OpenCode runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.real.support.scripts import subagent, tool

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support.bridge import Bridge


async def test_progress_shows_tools_sub_agents_and_writing_as_they_happen(
    bridge: Bridge, grounds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opencode_mcp.callers.progress.INTERVAL_S", 0.2)
    heard: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        heard.append(message or "")

    prompt = "\n".join(
        [
            tool("bash", command="sleep 1.5", description="Run the tests"),
            "THEN",
            subagent("SLOW:6,5"),
            "THEN",
            "SLOW:12,8",
        ]
    )
    arguments = {"prompt": prompt, "cwd": str(grounds), "wait-seconds": 60}
    await bridge.call_exactly("opencode", arguments, progress=hear)
    lines = iter(heard)  # in this order, whatever else is told between them
    for begins in (
        "turn 1 of ses_",
        "thinking (",
        "bash: Run the tests (running ",
        "sub-agent general: sub (running ",
        "writing its answer (",
    ):
        assert any(line.startswith(begins) for line in lines), (begins, heard)
    assert heard[-1].endswith(", 2 tool calls")
    assert all(len(line) <= 200 for line in heard)

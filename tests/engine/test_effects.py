"""What a turn left: tool calls as they really ended, changed files, tokens."""

from __future__ import annotations

import pytest

from opencode_mcp.records import StopReason
from tests.engine.make import (
    ABORTED,
    BUSY,
    assistant,
    error,
    judged,
    summary,
    text,
    tool,
    user,
)

#: as bash leaves it when it died at once (tried): OpenCode calls it completed
_FAST = tool(
    "completed",
    output="started\n\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>",
    title="sleep 30",
)
#: as a slow death leaves it: the output is in the metadata
_SLOW = tool(
    "error",
    error="Tool execution aborted",
    metadata={"output": "started\n", "interrupted": True},
)


@pytest.mark.parametrize("part", [_FAST, _SLOW], ids=["died-at-once", "died-slowly"])
@pytest.mark.parametrize("stop", [StopReason.CANCEL, StopReason.TIMEOUT, StopReason.LOOP, None])
def test_a_call_that_an_abort_ended_is_cancelled_with_its_output(
    part: dict[str, object], stop: StopReason | None
) -> None:
    verdict = judged(user(), assistant(part, error=ABORTED, finish=None), stop=stop)
    (call,) = verdict.tool_calls
    assert call.status == "cancelled"
    assert call.reason is not None
    assert "output so far: started" in call.reason
    assert "shell_metadata" not in call.reason
    assert len(call.reason) <= 300
    assert "PROCESS_MAY_LIVE" in [code for code, _ in verdict.warnings]


@pytest.mark.parametrize("status", ["pending", "running"])
def test_no_tool_call_runs_after_the_end(status: str) -> None:
    verdict = judged(user(), assistant(tool(status), finish=None, completed=False))
    assert [call.status for call in verdict.tool_calls] == ["cancelled"]


def test_only_the_end_of_a_long_output_is_told() -> None:
    part = tool("running", metadata={"output": "a" * 50_000 + "the end"})
    (call,) = judged(user(), assistant(part, error=ABORTED)).tool_calls
    assert call.reason is not None
    assert call.reason.endswith("the end")
    assert len(call.reason) <= 300


def test_a_running_tool_call_is_shown_as_running_while_the_turn_runs() -> None:
    verdict = judged(user(), assistant(tool("running"), finish=None, completed=False), status=BUSY)
    assert [call.status for call in verdict.tool_calls] == ["running"]


def test_a_completed_call_of_a_completed_turn_keeps_its_word() -> None:
    """A command may print whatever it likes."""
    verdict = judged(user(), assistant(_FAST, finish="tool-calls"), assistant(text("ok")))
    assert [call.status for call in verdict.tool_calls] == ["completed"]
    assert verdict.warnings == ()


def test_a_call_that_was_done_before_the_cut_stays_done() -> None:
    done = tool("completed", "write", output="Wrote file successfully.", title="a.py")
    failed = tool("error", "read", error="File not found: b.py")
    verdict = judged(user(), assistant(done, failed, error=ABORTED), stop=StopReason.CANCEL)
    assert [(call.status, call.reason) for call in verdict.tool_calls] == [
        ("completed", None),
        ("error", "File not found: b.py"),
    ]
    assert verdict.warnings == ()


def test_a_subagent_that_was_cut_may_leave_a_process() -> None:
    part = tool("error", "task", error="Tool execution aborted", metadata={"interrupted": True})
    verdict = judged(user(), assistant(part, error=ABORTED))
    assert [call.status for call in verdict.tool_calls] == ["cancelled"]
    assert "PROCESS_MAY_LIVE" in [code for code, _ in verdict.warnings]


@pytest.mark.parametrize(
    ("part", "files"),
    [
        pytest.param(
            tool("completed", "write", metadata={"filepath": "/repo/sub/a.py"}),
            ("a.py",),
            id="write",
        ),
        pytest.param(
            tool("completed", "edit", metadata={"filediff": {"file": "/repo/b.py"}}),
            ("/repo/b.py",),
            id="edit-outside-the-folder",
        ),
        pytest.param(
            tool(
                "completed",
                "apply_patch",
                metadata={
                    "files": [
                        {"filePath": "/repo/sub/new.py", "type": "add"},
                        {"filePath": "/repo/sub/old.py", "movePath": "/repo/sub/moved.py"},
                    ]
                },
            ),
            ("new.py", "old.py", "moved.py"),
            id="apply-patch",
        ),
        pytest.param(
            {"id": "p", "type": "patch", "files": ["/repo/sub/by_shell.txt"]},
            ("by_shell.txt",),
            id="patch-part",
        ),
        pytest.param(
            tool("error", "write", metadata={"filepath": "/repo/sub/a.py"}), (), id="failed-write"
        ),
        pytest.param(tool("completed", "odd", metadata={"filepath": 3, "files": 7}), (), id="odd"),
        pytest.param(tool("completed", "odd", metadata=[1]), (), id="odd-metadata"),
    ],
)
def test_the_files_that_tools_name_are_told(
    part: dict[str, object], files: tuple[str, ...]
) -> None:
    """OpenCode: without git its own summary is always empty (tried)."""
    verdict = judged(user(), assistant(part, finish="tool-calls"), assistant(text("ok")))
    assert verdict.files_changed == files


def test_a_file_that_summary_and_tool_name_is_told_once() -> None:
    """OpenCode: the summary counts from the worktree's root, tools say the whole path (tried)."""
    prompt = user(summary={"diffs": [{"file": "sub/a.py"}, {"file": "sub/by_shell.txt"}]})
    wrote = assistant(
        tool("completed", "write", metadata={"filepath": "/repo/sub/a.py"}), finish="tool-calls"
    )
    verdict = judged(prompt, wrote, assistant(text("ok")))
    assert verdict.files_changed == ("a.py", "by_shell.txt")


def test_tokens_and_cost_are_those_of_all_steps_and_compactions() -> None:
    tokens = {"input": 3, "output": 2.0, "reasoning": 1, "cache": {"read": 4, "write": 5}}
    step = assistant(tool("completed"), finish="tool-calls", tokens=tokens, cost=0.5)
    compaction = summary(tokens=tokens, cost=1.0)
    last = assistant(text("done"), tokens=tokens, cost=0.25)
    usage = judged(user(), step, *compaction, last).usage
    assert (usage.input, usage.output, usage.cache_write, usage.cost) == (9, 6, 15, 1.75)


def test_a_failed_turn_tells_what_it_did_before() -> None:
    wrote = assistant(
        tool("completed", "write", metadata={"filepath": "/repo/sub/a.py"}), finish="tool-calls"
    )
    verdict = judged(user(), wrote, assistant(error=error("APIError"), finish=None))
    assert verdict.files_changed == ("a.py",)
    assert verdict.resend_safety == "inspect_effects"

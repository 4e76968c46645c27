"""Logging: standard error only, one line a record, ids beside the text, no content.

Each test runs a process of its own, since logging belongs to a whole process.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}


def run(code: str) -> list[str]:
    """Run code after logging was set up as its first line says; return standard error's lines."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "", "standard output belongs to the protocol"
    return done.stderr.splitlines()


def run_json(code: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(code)]


def test_json_line_holds_time_level_logger_message_and_ids() -> None:
    (line,) = run_json("""
        import logging
        from opencode_mcp.logs import configure_logging
        configure_logging("info")
        log = logging.getLogger("opencode_mcp.engine")
        log.info("turn %s began", 2, extra={"session_id": "ses_1"})
        log.debug("not shown")
    """)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "INFO",
        "logger": "opencode_mcp.engine",
        "message": "turn 2 began",
        "session_id": "ses_1",
    }


def test_text_line_holds_the_same() -> None:
    (line,) = run("""
        import logging
        from opencode_mcp.logs import configure_logging
        configure_logging("debug", "text")
        extra = {"session_id": "ses_1", "note": "two\\nlines"}
        logging.getLogger("opencode_mcp.app").debug("hello", extra=extra)
    """)
    moment, rest = line.split(" ", 1)
    assert moment.endswith("Z")
    assert rest == "DEBUG opencode_mcp.app hello session_id=ses_1 note='two\\nlines'"


def test_terminal_gets_text() -> None:
    """Contract §4, LOG_FORMAT."""
    ours, theirs = pty.openpty()
    try:
        code = """
            import logging
            from opencode_mcp.logs import configure_logging
            configure_logging("info")
            logging.getLogger("opencode_mcp").info("hello")
        """
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env=ENVIRONMENT,
            stderr=theirs,
            check=True,
            timeout=60,
        )
        assert b"INFO opencode_mcp hello" in os.read(ours, 4096)
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("order", ["before", "after"])
def test_fastmcp_and_mcp_log_as_we_do_and_never_below_info(order: str) -> None:
    """FastMCP: at DEBUG it logs a tool's arguments; its own handler wraps lines (12.3)."""
    setup = 'from opencode_mcp.logs import configure_logging; configure_logging("debug")'
    load = "import fastmcp"
    first, second = (setup, load) if order == "before" else (load, setup)
    lines = run_json(f"""
        import logging
        {first}
        {second}
        for name in ("fastmcp.server", "mcp.server"):
            logging.getLogger(name).debug("hunter2")
            logging.getLogger(name).info("a long line " * 30)
    """)
    assert [line["logger"] for line in lines] == ["fastmcp.server", "mcp.server"]
    assert all(line["message"] == "a long line " * 30 for line in lines)


def test_other_packages_are_heard_from_warning_on() -> None:
    lines = run_json("""
        import logging, warnings
        from opencode_mcp.logs import configure_logging
        configure_logging("debug")
        logging.getLogger("somebody").info("not shown")
        logging.getLogger("somebody").warning("shown")
        warnings.warn("odd")
    """)
    assert [line["logger"] for line in lines] == ["somebody", "py.warnings"]


def test_last_set_up_counts_and_nothing_is_said_twice() -> None:
    lines = run("""
        import logging
        from opencode_mcp.logs import configure_logging
        configure_logging("error", "json")
        configure_logging("info", "text")
        logging.getLogger("opencode_mcp").info("once")
    """)
    assert [line.partition(" ")[2] for line in lines] == ["INFO opencode_mcp once"]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_exception_that_quotes_its_input_is_logged_without_it(log_format: str) -> None:
    """Ours: prompts and answers never reach the log, not even through somebody's error text."""
    lines = run(f"""
        import asyncio, logging
        from pydantic import TypeAdapter
        from opencode_mcp.errors import StoreError
        from opencode_mcp.logs import configure_logging
        configure_logging("info", "{log_format}")
        log = logging.getLogger("opencode_mcp")
        def quote():
            TypeAdapter(int).validate_python("hunter2")
        try:
            quote()
        except ValueError as error:
            try:
                raise StoreError("the disk is full") from error
            except StoreError:
                log.exception("failed")
        async def group():
            async with asyncio.TaskGroup() as tasks:
                async def one(): quote()
                tasks.create_task(one())
        try:
            asyncio.run(group())
        except ExceptionGroup:
            log.exception("failed again")
    """)
    text = "\n".join(lines)
    assert "hunter2" not in text
    assert "in quote" in text
    assert "opencode_mcp.errors.StoreError: the disk is full" in text
    assert text.count("ValidationError: (text left out") == 2
    if log_format == "json":
        assert [json.loads(line)["message"] for line in lines] == ["failed", "failed again"]
        assert "exception" in json.loads(lines[0])


@pytest.mark.parametrize("order", ["before", "after"])
def test_uvicorn_is_heard_from_warning_on_and_its_access_lines_never(order: str) -> None:
    """Ours: a query may hold a token. uvicorn writes them if their logger has any handler."""
    setup = 'from opencode_mcp.logs import configure_logging; configure_logging("debug")'
    load = """logging.config.dictConfig(uvicorn.config.LOGGING_CONFIG)"""
    first, second = (setup, "") if order == "before" else (load, setup)
    (line,) = run_json(f"""
        import logging.config
        import uvicorn
        {first}
        {second}
        uvicorn.Config(None, log_config=None)
        access = logging.getLogger("uvicorn.access")
        assert not access.hasHandlers()
        access.info("GET /mcp?token=hunter2")
        access.error("GET /mcp?token=hunter2")
        logging.getLogger("uvicorn.error").info("Started server process")
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.\\nhunter2")
    """)
    assert (line["logger"], line["level"]) == ("uvicorn.error", "WARNING")
    assert line["message"] == "Invalid HTTP request received."


def test_what_others_log_is_cut_to_its_first_line() -> None:
    """Ours: what follows quotes: asyncio shows a task with its exception, pydantic its input."""
    lines = run_json("""
        import asyncio, gc, logging
        from opencode_mcp.logs import configure_logging
        configure_logging("debug")
        async def fail():
            raise ValueError("hunter2")
        async def forget():
            task = asyncio.create_task(fail(), name="x")
            await asyncio.sleep(0.01)
            del task
            gc.collect()
        asyncio.run(forget())
        logging.getLogger("mcp.server").warning("Failed to validate: 1 error\\n input='hunter2'")
    """)
    assert [line["message"] for line in lines] == [
        "Task exception was never retrieved",
        "Failed to validate: 1 error",
    ]
    assert "hunter2" not in str(lines)
    assert "in fail" in lines[0]["exception"]


def test_ids_of_what_is_done_are_on_every_line_also_of_others_and_of_tasks() -> None:
    lines = run_json("""
        import asyncio, logging
        from opencode_mcp.log_events import Event, concerning, only_concerning, tell
        from opencode_mcp.logs import configure_logging
        configure_logging("info")
        log = logging.getLogger("opencode_mcp")
        async def deep():
            logging.getLogger("somebody").warning("deep")
            with only_concerning(session_id="ses_2", turn_id=None):
                tell(log, Event.TURN_OVER, outcome="completed", error_name=None)
        async def work():
            with concerning(call_id="1", session_id="ses_1"):
                task = asyncio.create_task(deep())
                tell(log, Event.CALL_OVER, session_id="ses_3")
            await task
            log.info("after")
        asyncio.run(work())
    """)
    call, deep, turn, after = ({k: v for k, v in one.items() if k != "time"} for one in lines)
    assert (call["event"], call["call_id"], call["session_id"]) == ("call_over", "1", "ses_3")
    assert (deep["call_id"], deep["session_id"]) == ("1", "ses_1")
    assert turn == {
        "level": "INFO",
        "logger": "opencode_mcp",
        "message": "a turn is over",
        "event": "turn_over",
        "outcome": "completed",
        "session_id": "ses_2",
    }
    assert set(after) == {"level", "logger", "message"}


def test_who_does_not_read_the_log_stops_nobody(tmp_path: Path) -> None:
    """Ours: a client may never read it; once a pipe is full, a write waits for ever."""
    done = tmp_path / "done"
    code = f"""
        import logging, pathlib, sys
        from opencode_mcp.logs import configure_logging
        configure_logging("info", "json")
        log = logging.getLogger("opencode_mcp")
        for number in range(2000):
            log.info("a line", extra={{"number": number, "more": "é" * 3000}})
        pathlib.Path({str(done)!r}).touch()
        sys.stdin.readline()
        log.info("the last")
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        deadline = time.monotonic() + 30
        while not done.exists() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.05)
        assert done.exists(), "it waits for its reader"
        os.set_blocking(process.stderr.fileno(), False)
        first = process.stderr.read()
        os.set_blocking(process.stderr.fileno(), True)
        process.stdin.write(b"go on\n")
        process.stdin.flush()
        rest = process.stderr.read()
    lines = (first + rest).splitlines()
    dropped, last = json.loads(lines[-2]), json.loads(lines[-1])
    assert dropped["event"] == "lines_dropped"
    whole = [json.loads(line) for line in lines[:-2] if line.endswith(b"}")]
    assert len(whole) >= len(lines) - 3, "one line at most is cut"
    assert [line["number"] for line in whole] == list(range(len(whole)))
    assert dropped["count"] == 2000 - len(whole)
    assert last["message"] == "the last"


def test_setting_up_logging_imports_nothing_of_the_framework() -> None:
    """Ours: the start is measured (issue 2)."""
    run("""
        import sys
        from opencode_mcp.logs import configure_logging
        configure_logging("info", "text")
        heavy = {"fastmcp", "mcp", "aiohttp", "pydantic", "pythonjsonlogger"} & set(sys.modules)
        assert not heavy, heavy
    """)

"""Logging: standard error only, one line a record, ids beside the text, and nobody waits for it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

from tests.support.log_runs import ENVIRONMENT, run, run_json

if TYPE_CHECKING:
    from pathlib import Path


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


def test_last_set_up_counts_and_nothing_is_said_twice() -> None:
    lines = run("""
        import logging
        from opencode_mcp.logs import configure_logging
        configure_logging("error", "json")
        configure_logging("info", "text")
        logging.getLogger("opencode_mcp").info("once")
    """)
    assert [line.partition(" ")[2] for line in lines] == ["INFO opencode_mcp once"]


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

"""What other packages add to our log: as we write it, when it matters, without what it quotes."""

from __future__ import annotations

import json

import pytest

from tests.support.log_runs import run, run_json


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

"""How a command works on the tracking database while servers do: for a moment, as one of them.

It has a presence lock, takes leases and keeps to the store's transactions like any server, and
does what it was told and nothing else: what others left unfinished is theirs to finish.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from opencode_mcp.cli.screen import EXIT_FAILED, EXIT_NOT_FOUND, leave, note
from opencode_mcp.cli.settings_options import load
from opencode_mcp.errors import CallerError, SessionNotFoundError, StoreError
from opencode_mcp.logs import configure_logging
from opencode_mcp.opencode_errors import OpencodeError
from opencode_mcp.records import LOCAL, Principal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import click

    from opencode_mcp.app.runtime import Runtime
    from opencode_mcp.settings import Loaded, Settings

#: contract §1: the command line is `local`, and sees all
OPERATOR = Principal(LOCAL, sees_all=True)
#: a command that only looks does not wait longer than this for an OpenCode that does not answer
LOOK_S = 5


def visit(
    context: click.Context, work: Callable[[Runtime], Awaitable[int]], *, only_looks: bool = False
) -> NoReturn:
    """Do `work` on the tracking database and exit with its code, or with the reason and 1, 2, 3.

    `only_looks`: it reads from OpenCode alone, and waits at most `LOOK_S` for each answer.
    """
    loaded = load(context, settle=False)
    settings = loaded.settings
    if not settings.database.exists():
        leave(
            f"there is no tracking database at {settings.database}: the first server makes it, or"
            " `opencode-mcp migrate`. If yours is elsewhere, name it with --database",
            EXIT_FAILED,
        )
    _quiet_logging(loaded)
    if only_looks:
        limit = min(LOOK_S, settings.request_timeout_seconds)
        settings = settings.model_copy(update={"request_timeout_seconds": limit})
    try:
        code = asyncio.run(_visit(settings, work))
    except SessionNotFoundError as error:
        leave(str(error), EXIT_NOT_FOUND)
    except (CallerError, OpencodeError, StoreError) as error:
        leave(str(error), EXIT_FAILED)
    sys.exit(code)


async def _visit(settings: Settings, work: Callable[[Runtime], Awaitable[int]]) -> int:
    from opencode_mcp.app.runtime import open_runtime  # noqa: PLC0415 - late, as a server does
    from opencode_mcp.clock import Clock  # noqa: PLC0415
    from opencode_mcp.engine.closing import Closing  # noqa: PLC0415

    closing = Closing(Clock())
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        # what was accepted is recorded and goes on; a second signal ends this at once
        loop.remove_signal_handler(number)
        note("stopping: what was begun is left in order, which may take some seconds")
        closing.begin(refuse=True)

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(ValueError, RuntimeError):  # not in the main thread: somebody else's signals
            loop.add_signal_handler(number, stop, number)
    async with open_runtime(settings, os.environ, closing, carries_on=False) as runtime:
        return await work(runtime)


def _quiet_logging(loaded: Loaded) -> None:
    """Let a command speak for itself: the log is for who asks for it."""
    settings = loaded.settings
    level = settings.log_level if "log_level" in loaded.sources else "error"
    configure_logging(level, settings.log_format)

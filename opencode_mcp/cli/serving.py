"""`opencode-mcp serve`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import TYPE_CHECKING

import click

from opencode_mcp.cli.screen import EXIT_FAILED, leave
from opencode_mcp.cli.settings_options import SettingsCommand, load, takes_settings
from opencode_mcp.errors import ListenError, StoreError
from opencode_mcp.log_events import Event, tell

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from opencode_mcp.settings import Settings

log = logging.getLogger(__name__)


@click.command(cls=SettingsCommand, shows_settings=True, short_help="Serve MCP clients.")
@takes_settings
@click.pass_context
def serve(context: click.Context) -> None:
    """Serve MCP clients: one over stdin and stdout, or any number over HTTP.

    A secret has no option, since process lists show it: set OPENCODE_MCP_SERVER_PASSWORD (or
    _FILE) and OPENCODE_MCP_AUTH_TOKENS (or _FILE) in the environment.
    """
    from opencode_mcp.logs import configure_logging  # noqa: PLC0415 - only when serving

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # until `app.exiting` takes them
        signal.signal(number, lambda *_: os._exit(0))  # nothing is open or begun yet

    settings = load(context).settings
    configure_logging(settings.log_level, settings.log_format, content=settings.log_content)
    if settings.ignored_variables:
        tell(log, Event.VARIABLES_IGNORED, variables=", ".join(settings.ignored_variables))
    try:
        asyncio.run(_serving(settings))
    except (ListenError, StoreError) as error:
        leave(str(error), EXIT_FAILED)
    from opencode_mcp.app.exiting import go  # noqa: PLC0415 - only when serving

    # All is closed. The interpreter would take half a second to tidy up, on a busy machine some
    # seconds, and stops every other thread first: also the one that keeps an exit in time.
    go()


def _serving(settings: Settings) -> Coroutine[None, None, None]:
    """Import the one transport that is used: after logging is set up, and to start fast."""
    if settings.transport == "http":
        from opencode_mcp.app.http import serve_http  # noqa: PLC0415

        return serve_http(settings, os.environ)
    from opencode_mcp.app.stdio import serve_stdio  # noqa: PLC0415

    return serve_stdio(settings, os.environ)

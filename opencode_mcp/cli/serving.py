"""`opencode-mcp serve`."""

from __future__ import annotations

import asyncio
import logging
import os

import click

from opencode_mcp.cli.screen import EXIT_FAILED, leave
from opencode_mcp.cli.settings_options import SettingsCommand, load, takes_settings
from opencode_mcp.errors import StoreError

log = logging.getLogger(__name__)


@click.command(cls=SettingsCommand, shows_settings=True, short_help="Serve an MCP client.")
@takes_settings
@click.pass_context
def serve(context: click.Context) -> None:
    """Serve one MCP client over stdin and stdout.

    A secret has no option, since process lists show it: set OPENCODE_MCP_SERVER_PASSWORD (or
    _FILE) and OPENCODE_MCP_AUTH_TOKENS (or _FILE) in the environment.
    """
    from opencode_mcp.logs import configure_logging  # noqa: PLC0415 - only when serving

    settings = load(context).settings
    configure_logging(settings.log_level, settings.log_format)
    if settings.ignored_variables:
        names = ", ".join(settings.ignored_variables)
        log.info("Kubernetes' service links are ignored", extra={"variables": names})
    from opencode_mcp.app.stdio import serve_stdio  # noqa: PLC0415 - after logging is set up

    try:
        asyncio.run(serve_stdio(settings, os.environ))
    except StoreError as error:
        leave(str(error), EXIT_FAILED)

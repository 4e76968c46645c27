"""The command line: `opencode-mcp [--config FILE] [serve | demo]`.

Exit codes: 0 done; 1 failed: the tracking database, the address to listen at, the demo; 2 wrong
settings or usage.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opencode_mcp import __version__
from opencode_mcp.errors import ConfigError, ListenError, StoreError
from opencode_mcp.log_events import Event, tell

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from opencode_mcp.settings import Settings

log = logging.getLogger(__name__)

EXIT_FAILED = 1
EXIT_USAGE = 2


@click.group(invoke_without_command=True)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A TOML file with settings; the environment (OPENCODE_MCP_…) wins over it.",
)
@click.version_option(__version__, prog_name="opencode-mcp", message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context, config: Path | None) -> None:
    """Bridge MCP clients to OpenCode. Without a command: serve."""
    context.obj = config
    if context.invoked_subcommand is None:
        context.invoke(serve)


@main.command()
@click.pass_obj
def serve(config: Path | None) -> None:
    """Serve MCP clients: one over stdin and stdout, or any number over HTTP."""
    from opencode_mcp.logs import configure_logging  # noqa: PLC0415 - only when serving
    from opencode_mcp.settings import load_settings  # noqa: PLC0415

    try:
        settings = load_settings(os.environ, config_file=config)
    except ConfigError as error:
        _leave(str(error), EXIT_USAGE)
    configure_logging(settings.log_level, settings.log_format, content=settings.log_content)
    if settings.ignored_variables:
        tell(log, Event.VARIABLES_IGNORED, variables=", ".join(settings.ignored_variables))
    try:
        asyncio.run(_serving(settings))
    except (ListenError, StoreError) as error:
        _leave(str(error), EXIT_FAILED)


def _serving(settings: Settings) -> Coroutine[None, None, None]:
    """Import the one transport that is used: after logging is set up, and to start fast."""
    if settings.transport == "http":
        from opencode_mcp.app.http import serve_http  # noqa: PLC0415

        return serve_http(settings, os.environ)
    from opencode_mcp.app.stdio import serve_stdio  # noqa: PLC0415

    return serve_stdio(settings, os.environ)


@main.command()
@click.option("--model", help="provider/model of your own OpenCode; default: a scripted model.")
def demo(model: str | None) -> None:
    """Run the main job for real: start, reply, list, end; and show each answer."""
    from opencode_mcp.cli.demo import run_demo  # noqa: PLC0415 - not needed to serve

    sys.exit(asyncio.run(run_demo(model=model)))


def _leave(message: str, code: int) -> None:
    click.echo(f"opencode-mcp: {message}", err=True)
    sys.exit(code)

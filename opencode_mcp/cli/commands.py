"""The command line: `opencode-mcp [--config FILE] [COMMAND]`. docs/commands.md tells more.

Exit codes of every command: 0 done; 1 it failed, or found a problem, or could not confirm what it
did; 2 wrong settings or usage; 3 no such session (or instance).
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import ClassVar

import click

from opencode_mcp import __version__
from opencode_mcp.cli.screen import EXIT_CODES


class Commands(click.Group):
    """The commands by name, each imported when it is needed: `serve` must start fast."""

    places: ClassVar[dict[str, str]] = {
        "serve": "opencode_mcp.cli.serving:serve",
        "doctor": "opencode_mcp.cli.doctoring:doctor",
        "sessions": "opencode_mcp.cli.sessions:sessions",
        "config": "opencode_mcp.cli.configuring:config",
        "migrate": "opencode_mcp.cli.migrating:migrate",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the help."""
        return [*self.places, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command, or return None."""
        place = self.places.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, _, name = place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(cls=Commands, invoke_without_command=True, epilog=EXIT_CODES)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A TOML file with settings; the environment (OPENCODE_MCP_…) wins over it.",
)
@click.version_option(__version__, prog_name="opencode-mcp", message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context, config: Path | None) -> None:
    """Bridge MCP clients to OpenCode. Without a command: serve."""
    context.obj = config
    if context.invoked_subcommand is None:
        from opencode_mcp.cli.serving import serve  # noqa: PLC0415 - a command is imported late

        context.invoke(serve)


@main.command(short_help="Try it: start, reply, list, end, for real.")
@click.option("--model", help="provider/model of your own OpenCode; default: a scripted model.")
def demo(model: str | None) -> None:
    """Run the main job for real: start, reply, list, end; and show each answer."""
    from opencode_mcp.cli.demo import run_demo  # noqa: PLC0415 - not needed to serve

    sys.exit(asyncio.run(run_demo(model=model)))

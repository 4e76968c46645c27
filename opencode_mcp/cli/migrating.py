"""`opencode-mcp migrate`: bring the tracking database to the schema of this release."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import click

from opencode_mcp.cli.screen import EXIT_FAILED, leave, note, print_json
from opencode_mcp.cli.settings_options import SettingsCommand, load, takes_settings
from opencode_mcp.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.store.inspecting import Inspection


@click.command(cls=SettingsCommand, short_help="Bring the database to this release's schema.")
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if it would.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, for programs.")
@takes_settings
@click.pass_context
def migrate(context: click.Context, *, check: bool, as_json: bool) -> None:
    """Make the tracking database, or bring it to the schema of this release.

    Every server does the same when it starts; this is for doing it at a time of your choice.
    There is no way back, and a server of an older release refuses the database afterwards: stop
    the servers and make a backup first. A database of a newer release is refused, unchanged.
    """
    from opencode_mcp.store.inspecting import inspect, newest_schema  # noqa: PLC0415 - late
    from opencode_mcp.store.prepare import prepare  # noqa: PLC0415

    path = load(context, settle=False).settings.database
    try:
        before, newest = inspect(path), newest_schema()
        found = before.schema if before else 0
        if before is not None and (found > newest or not before.is_ours):
            prepare(path)  # refuses it, and says why
        if found != newest and not check:
            if found:
                note(f"changing {path}; should you want to go back, restore your backup")
            prepare(path)
    except StoreError as error:
        leave(str(error), EXIT_FAILED)
    _report(path, before, found, newest, check=check, as_json=as_json)


def _report(  # noqa: PLR0913 - the facts of one report
    path: Path, before: Inspection | None, found: int, newest: int, *, check: bool, as_json: bool
) -> NoReturn:
    is_due = found != newest
    if as_json:
        print_json(
            {
                "database": str(path),
                "existed": before is not None,
                "from": found,
                "to": newest,
                "changed": is_due and not check,
                "upToDate": not (is_due and check),
            }
        )
    elif not is_due:
        click.echo(f"{path} is up to date: schema {newest}")
    elif check:
        click.echo(_due(path, before, found, newest))
    else:
        what = "made with" if not found else f"brought from schema {found} to"
        click.echo(f"{path}: {what} schema {newest}")
    raise SystemExit(EXIT_FAILED if is_due and check else 0)


def _due(path: Path, before: Inspection | None, found: int, newest: int) -> str:
    if before is None or not found:
        return f"{path} is not made yet: `opencode-mcp migrate` makes it, or the first server"
    return (
        f"{path} has schema {found}, this release uses {newest}: stop the servers, make a backup"
        f" (sqlite3 {path} '.backup {path}.{found}'), then run `opencode-mcp migrate`"
    )

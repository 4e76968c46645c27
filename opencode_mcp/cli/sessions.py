"""`opencode-mcp sessions`: look at what is tracked, end it, and mend where it is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from opencode_mcp.cli.screen import EXIT_CODES
from opencode_mcp.cli.settings_options import SettingsCommand, takes_settings
from opencode_mcp.cli.visiting import visit

if TYPE_CHECKING:
    from opencode_mcp.records import EndAction


class InOrder(click.Group):
    """Its help lists its commands as they are defined: what is needed most comes first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in that order."""
        del ctx
        return list(self.commands)


_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document, for programs.")


@click.group(
    cls=InOrder, epilog=EXIT_CODES, short_help="List, show, end tracked sessions, and more."
)
def sessions() -> None:
    """List, show and end tracked sessions; alias, rebind and forget them.

    The command line sees the sessions of everybody. It may be used while servers run.
    """


@sessions.command("list", cls=SettingsCommand, short_help="List sessions, of all owners.")
@click.option("--owner", metavar="NAME", help="Only this owner's: local, anonymous, token:<name>.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True)
@_JSON
@takes_settings
@click.pass_context
def list_sessions(
    context: click.Context, *, owner: str | None, limit: int, offset: int, as_json: bool
) -> None:
    """List tracked sessions, those used last first. Starts no OpenCode."""
    from opencode_mcp.cli.sessions_look import list_page  # noqa: PLC0415 - a command is late

    work = partial(list_page, owner=owner, limit=limit, offset=offset, as_json=as_json)
    visit(context, work, only_looks=True)


@sessions.command(cls=SettingsCommand, short_help="Show all that is known of one.")
@click.argument("session", metavar="ID")
@_JSON
@takes_settings
@click.pass_context
def show(context: click.Context, session: str, *, as_json: bool) -> None:
    """Show all that is known of a session, by its id or an alias; no prompts and no answers."""
    from opencode_mcp.cli.sessions_look import show_one  # noqa: PLC0415

    visit(context, partial(show_one, reference=session, as_json=as_json), only_looks=True)


@sessions.command(cls=SettingsCommand, short_help="End some, as opencode-end does.")
@click.argument("session", metavar="ID...", nargs=-1, required=True)
@click.option(
    "--action",
    type=click.Choice(["delete", "archive"]),
    help="What becomes of the conversation; default: the setting END_ACTION.",
)
@_JSON
@takes_settings
@click.pass_context
def end(
    context: click.Context, session: tuple[str, ...], *, action: str | None, as_json: bool
) -> None:
    """End sessions as opencode-end does: stop, reject, delete or archive, confirm, forget.

    Exits with 0 when all are confirmed, 1 when one is not (it stays recorded: servers on the same
    database go on, and so does this command when it is run again), 3 when one is not tracked.
    """
    from opencode_mcp.cli.sessions_end import end_all  # noqa: PLC0415

    work = partial(end_all, references=session, action=_action(action), as_json=as_json)
    visit(context, work)


@sessions.command(cls=SettingsCommand, short_help="Give one a further name.")
@click.argument("session", metavar="ID")
@click.argument("name")
@_JSON
@takes_settings
@click.pass_context
def alias(context: click.Context, session: str, name: str, *, as_json: bool) -> None:
    """Let NAME name a session too, for callers that still hold an old thread id."""
    from opencode_mcp.cli.sessions_mend import add_alias  # noqa: PLC0415

    visit(context, partial(add_alias, reference=session, name=name, as_json=as_json))


@sessions.command(cls=SettingsCommand, short_help="Say that an OpenCode is elsewhere now.")
@click.argument("old")
@click.argument("new")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--force", is_flag=True, help="Although what can be seen speaks against it.")
@_JSON
@takes_settings
@click.pass_context
def rebind(  # noqa: PLR0913 - click's: one for each option
    context: click.Context, old: str, new: str, *, yes: bool, force: bool, as_json: bool
) -> None:
    """Move all sessions of the OpenCode OLD to NEW, when its address changed for good.

    OLD is a URL, or the id of an instance (`sessions show` tells it); NEW is a URL, or the word
    `managed` for the OpenCode that servers with this HOME start themselves. You say with it that
    NEW is the same OpenCode, or one on the same data. Stop the servers that use OLD first.
    """
    from opencode_mcp.cli.sessions_rebind import rebind_all  # noqa: PLC0415

    work = partial(rebind_all, old=old, new=new, yes=yes, force=force, as_json=as_json)
    visit(context, work, only_looks=True)


@sessions.command(cls=SettingsCommand, short_help="Give one up that cannot be ended.")
@click.argument("session", metavar="ID")
@click.option("--unproven", is_flag=True, help="Yes: give up what cannot be proven.")
@_JSON
@takes_settings
@click.pass_context
def forget(context: click.Context, session: str, *, unproven: bool, as_json: bool) -> None:
    """Stop tracking a session whose OpenCode will never answer again; nothing is sent to it.

    Use `sessions end` wherever that OpenCode can still be reached.
    """
    from opencode_mcp.cli.sessions_mend import forget_one  # noqa: PLC0415

    visit(context, partial(forget_one, reference=session, unproven=unproven, as_json=as_json))


def _action(word: str | None) -> EndAction | None:
    from opencode_mcp.records import EndAction  # noqa: PLC0415

    return None if word is None else EndAction(word)

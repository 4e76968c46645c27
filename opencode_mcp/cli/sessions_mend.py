"""`sessions alias` and `sessions forget`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opencode_mcp.cli.screen import EXIT_NOT_FOUND, EXIT_USAGE, note, print_json
from opencode_mcp.cli.sessions_look import unknown
from opencode_mcp.engine.ends import how_it_ended

if TYPE_CHECKING:
    from opencode_mcp.app.runtime import Runtime
    from opencode_mcp.records import Instance, Session, Turn

_LONGEST_NAME = 200


async def add_alias(runtime: Runtime, *, reference: str, name: str, as_json: bool) -> int:
    """Give a session a further name; return the exit code."""
    if not name.strip() or name != name.strip() or not name.isprintable():
        note("opencode-mcp: NAME must be printable, without blanks at either end")
        return EXIT_USAGE
    if len(name) > _LONGEST_NAME:
        note(f"opencode-mcp: NAME has {len(name)} characters: at most {_LONGEST_NAME} are allowed")
        return EXIT_USAGE
    session = await runtime.store.resolve(reference)
    if session is None:
        return await _not_tracked(runtime, reference)
    await runtime.store.add_alias(name, session.id)
    if as_json:
        print_json({"sessionId": session.id, "aliases": await runtime.store.aliases(session.id)})
    else:
        click.echo(f"{name} names {session.id}")
    return 0


async def forget_one(runtime: Runtime, *, reference: str, unproven: bool, as_json: bool) -> int:
    """Stop tracking a session without proof; return the exit code."""
    store = runtime.store
    session = await store.resolve(reference)
    if session is None:
        return await _not_tracked(runtime, reference)
    instance = await store.instance(session.instance_id)
    turn = await store.turn(session.id, session.turn_count)
    given_up = _given_up(session, instance, turn)
    if not unproven:
        note(
            f"opencode-mcp: {session.id} was not forgotten. End it instead: `opencode-mcp sessions"
            f" end {session.id}`. Only if its OpenCode ({_name(instance)}) will never answer"
            " again: `forget --unproven`, which gives up:"
        )
        note(_listed(given_up))
        return EXIT_USAGE

    def on_wait() -> None:
        note("a server is at work on its end: waiting until it lets go (at most 30 s) …")

    default = runtime.settings.end_action
    await runtime.operator().forget(session, default, on_wait=on_wait)
    if as_json:
        print_json(
            {
                "sessionId": session.id,
                "status": "forgotten",
                "turnMayRun": _may_run(turn),
                "givenUp": given_up,
            }
        )
    else:
        click.echo(f"{session.id} is not tracked any more. Nothing was confirmed, so this is so:")
        click.echo(_listed(given_up))
    return 0


async def _not_tracked(runtime: Runtime, reference: str) -> int:
    tombstone = await runtime.store.tombstone(reference)
    why = (
        f"session {reference[:100]} {how_it_ended(tombstone)}"
        if tombstone
        else unknown(runtime, reference)
    )
    note(f"opencode-mcp: {why}")
    return EXIT_NOT_FOUND


def _given_up(session: Session, instance: Instance | None, turn: Turn | None) -> list[str]:
    """Return what is not known, or not done, of a session that is forgotten without proof."""
    where = _name(instance)
    runs = (
        f"its turn {session.turn_count} may run on in {where}, change files and cost money; once"
        " the server that began it is gone, nobody stops it"
        if _may_run(turn)
        else f"no turn of it was known to run; whether one does in {where} was not looked at"
    )
    ending = session.ending
    lost = (
        f"its {ending.action.value}, accepted at {ending.since:%Y-%m-%dT%H:%M:%SZ}, was never"
        " confirmed and is not tried again"
        if ending
        else "it is neither deleted nor archived"
    )
    return [
        runs,
        f"{lost}: the conversation and its sub-sessions stay in that OpenCode's data",
        "permissions and questions that wait there stay open",
        "it cannot be gone on with from here; callers are told that it was forgotten without proof",
    ]


def _may_run(turn: Turn | None) -> bool:
    return turn is not None and turn.finished_at is None


def _name(instance: Instance | None) -> str:
    if instance is None:
        return "an OpenCode that is not on record"
    return instance.url or f"managed OpenCode {instance.id}"


def _listed(lines: list[str]) -> str:
    return "\n".join(f"  - {line}" for line in lines)

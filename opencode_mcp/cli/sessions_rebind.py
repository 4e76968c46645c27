"""`sessions rebind`: the operator's word that an OpenCode is elsewhere now (contract §1)."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from opencode_mcp.app.moving import look_at_move, managed_place
from opencode_mcp.cli.screen import (
    EXIT_FAILED,
    EXIT_NOT_FOUND,
    EXIT_USAGE,
    note,
    print_json,
)
from opencode_mcp.counting import counted
from opencode_mcp.engine.operating import Place
from opencode_mcp.settings_values import server_url

if TYPE_CHECKING:
    from opencode_mcp.app.runtime import Runtime
    from opencode_mcp.records import Instance

MANAGED = "managed"


async def rebind_all(  # noqa: PLR0913 - one for each option
    runtime: Runtime, *, old: str, new: str, yes: bool, force: bool, as_json: bool
) -> int:
    """Move all sessions of one OpenCode to another; return the exit code."""
    try:
        reference = _normalised(old, "OLD")
        instance = await runtime.store.find_instance(reference)
        if instance is None:
            await _tell_known(runtime, reference)
            return EXIT_NOT_FOUND
        place = _place(runtime, new)
    except ValueError as error:
        note(f"opencode-mcp: {error}")
        return EXIT_USAGE
    if place.url == instance.url and place.url is not None:
        note(f"opencode-mcp: OLD and NEW are the same: {place.url}")
        return EXIT_USAGE
    if not await _may_move(runtime, instance, place, new, yes=yes, force=force):
        return EXIT_FAILED
    moved = await runtime.operator().rebind(instance, place)
    if as_json:
        print_json(
            {
                "from": {"id": instance.id, "kind": instance.kind.value, "url": instance.url},
                "to": {
                    "id": moved.instance_id,
                    "kind": "attach" if place.url else MANAGED,
                    "url": place.url,
                },
                "sessions": moved.sessions,
                "starts": moved.starts,
            }
        )
    else:
        where = place.url or "the managed OpenCode of this environment"
        click.echo(f"{counted(moved.sessions, 'session')} moved from {reference} to {where}")
    return 0


def _normalised(text: str, what: str) -> str:
    """Return a URL in its one spelling; what is none is taken for an instance's id."""
    if "://" not in text:
        return text
    try:
        return server_url(text)
    except ValueError as error:  # never with its value: it may hold a password
        msg = f"{what}: {error}"
        raise ValueError(msg) from None


def _place(runtime: Runtime, new: str) -> Place:
    if new == MANAGED:
        try:
            return managed_place(runtime.settings, os.environ)
        except OSError as error:
            msg = f"NEW: the data folder of a managed OpenCode cannot be used: {error}"
            raise ValueError(msg) from error
    if "://" not in new:
        msg = f"NEW must be a URL that begins with http:// or https://, or the word {MANAGED}"
        raise ValueError(msg)
    return Place(url=_normalised(new, "NEW"))


async def _tell_known(runtime: Runtime, reference: str) -> None:
    known = [
        f"  {instance.url or instance.id} ({instance.kind.value}, {counted(count, 'session')})"
        for instance, count in await runtime.store.instances()
    ]
    note(f"opencode-mcp: no session was ever in an OpenCode {reference[:100]!r}; there are:")
    note("\n".join(known) or "  none")


async def _may_move(  # noqa: PLR0913 - the facts of one question
    runtime: Runtime, old: Instance, place: Place, new: str, *, yes: bool, force: bool
) -> bool:
    """Tell what is about to happen and what speaks against it; return whether to do it."""
    counts = {instance.id: count for instance, count in await runtime.store.instances()}
    source = old.url or f"managed OpenCode {old.id}"
    note(f"{counted(counts.get(old.id, 0), 'session')} of {source} → {place.url or new}")
    finding = await look_at_move(runtime, old, place)
    if finding.speaks_against and (finding.is_certain or not force):
        hint = "" if finding.is_certain else " (--force moves them all the same)"
        note(f"opencode-mcp: {finding.text}; nothing was moved{hint}")
        return False
    note(finding.text)
    if yes:
        return True
    if not sys.stdin.isatty():
        note("opencode-mcp: nothing was moved: say --yes where nobody can be asked")
        return False
    if click.confirm("Is NEW the same OpenCode, or one on the same data?", err=True):
        return True
    note("nothing was moved")
    return False

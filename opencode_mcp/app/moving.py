"""What can be seen for and against an operator's word that an OpenCode is elsewhere now.

A wrong word would let a 404 of another OpenCode pass for a deleted session, so what can be looked
at is looked at. Only reads; our password goes to no address but the configured one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opencode_mcp.engine.operating import Place, known_of
from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.opencode.data_id import data_folder, data_id
from opencode_mcp.opencode.instance_file import record_path
from opencode_mcp.opencode.locks import is_held_exclusively
from opencode_mcp.opencode_errors import OpencodeError, OpencodeUnavailableError
from opencode_mcp.records import InstanceKind
from opencode_mcp.settings import child_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opencode_mcp.app.runtime import Runtime
    from opencode_mcp.records import Instance
    from opencode_mcp.settings import Settings

_LOOK_S = 3.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What was seen. `speaks_against`: the move is refused unless it is forced."""

    text: str
    speaks_against: bool = False
    #: no word of an operator changes that
    is_certain: bool = False


def managed_place(settings: Settings, environ: Mapping[str, str]) -> Place:
    """Return the place of the data that a managed OpenCode of this environment uses.

    Gives that data its id, as a start would. Raises OSError; ValueError if the id is unreadable.
    """
    return Place(data_id=data_id(data_folder(child_environment(environ, settings))))


async def look_at_move(runtime: Runtime, old: Instance, place: Place) -> Finding:
    """Look whether sessions of `old` can be at `place`."""
    if old.kind is InstanceKind.MANAGED and _lives_here(runtime.settings, old):
        return Finding(
            f"the managed OpenCode {old.id} runs here: its sessions are reached through it",
            speaks_against=True,
            is_certain=True,
        )
    if place.url is not None:
        return await _look_at_url(runtime, old, place.url)
    if old.url is not None:
        return await _look_at_old(old.url)
    if old.data_id not in {None, place.data_id}:
        text = "the managed OpenCode of this environment has other data than that one had"
        return Finding(text, speaks_against=True)
    return Finding("the managed OpenCode of this environment has its data")


def _lives_here(settings: Settings, old: Instance) -> bool:
    try:
        return is_held_exclusively(record_path(Path(f"{settings.database}.instances"), old.id))
    except OSError:
        return False


async def _look_at_url(runtime: Runtime, old: Instance, url: str) -> Finding:
    settings = runtime.settings
    if settings.mode is not InstanceKind.ATTACH or settings.server_url != url:
        return Finding(f"not looked at: {url} is asked only where OPENCODE_MCP_SERVER_URL names it")
    try:
        known = await known_of(runtime.store, old, await (await runtime.instances()).own())
    except OpencodeError as error:
        return Finding(f"not looked at: {error}")
    if known.looked_for and not known.found:
        text = f"the OpenCode at {url} knows none of these sessions: other data?"
        return Finding(text, speaks_against=True)
    return Finding(f"the OpenCode at {url} knows {known.found} of {known.looked_for} looked for")


async def _look_at_old(url: str) -> Finding:
    """Look whether the old OpenCode is gone: its turns would run on, unseen."""
    client = OpencodeClient(url, username="opencode", password=None, request_timeout_s=_LOOK_S)
    try:
        async with client:
            await client.health()
    except OpencodeUnavailableError:
        return Finding(f"nothing answers at {url}")
    except OpencodeError:  # it wants a password, or is no OpenCode: something answers
        pass
    text = f"something still answers at {url}: what it runs would go on, and nobody would see it"
    return Finding(text, speaks_against=True)

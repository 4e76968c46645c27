"""What is made sure of before a prompt goes out.

Names are checked, because OpenCode takes a wrong one with 204 and fails in silence: a wrong model
leaves a user message without an answer, a wrong agent not even that (facts 2.4). And the folder is
warmed: an abort while OpenCode first reads a folder's providers poisons the folder. Every later
turn there fails ("All fibers interrupted without error") and `GET /config/providers` answers 503
without a body, until the folder's instance is disposed (tried on 1.18.33).
"""

from __future__ import annotations

import difflib
import logging
from typing import TYPE_CHECKING

from opencode_mcp.engine.catalogue import offered_agents
from opencode_mcp.errors import InvalidArgumentError
from opencode_mcp.log_events import Event, tell
from opencode_mcp.opencode_errors import OpencodeUnavailableError
from opencode_mcp.records import InstanceKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opencode_mcp.engine.instances import Connection
    from opencode_mcp.opencode.client import OpencodeClient

log = logging.getLogger(__name__)

#: what a poisoned folder answers to a read of its providers
_POISONED = 503


async def warm(connection: Connection, directory: str) -> None:
    """Make OpenCode read the folder's providers now, once for each folder and stretch of events.

    After a gap in the events OpenCode may be another process, or may have disposed the folder. A
    poisoned folder is disposed in managed mode, if nothing runs in it: there it is ours alone, but
    in attach mode that would hit everybody's sessions (facts 9.5). Raises OpencodeError.
    """
    generation = connection.events.generation
    if connection.warmed.get(directory) == generation:
        return
    try:
        await connection.client.providers(directory)
    except OpencodeUnavailableError as error:
        if error.status != _POISONED or not await _heal(connection, directory):
            raise
        await connection.client.providers(directory)
    connection.warmed[directory] = connection.events.generation


async def _heal(connection: Connection, directory: str) -> bool:
    """Dispose a poisoned folder of our own OpenCode; whether that was done."""
    if connection.instance.kind is not InstanceKind.MANAGED:
        return False
    if await connection.client.statuses(directory):  # somebody's turn began before
        return False
    tell(log, Event.FOLDER_DISPOSED, directory=directory)
    await connection.client.dispose(directory)
    return True


async def check_choice(
    client: OpencodeClient, directory: str, *, model: str | None, agent: str | None
) -> None:
    """Raise InvalidArgumentError unless OpenCode offers this model and this agent there."""
    if model is not None:
        providers = (await client.providers(directory)).providers
        offered = [f"{p.id}/{name}" for p in providers for name in p.models]
        _check("model", model, offered, "Models come from OpenCode's own configuration.")
    if agent is not None:
        agents = offered_agents(await client.agents(directory))
        _check("agent", agent, [one.name for one in agents], "")


def _check(argument: str, value: str, offered: Iterable[str], more: str) -> None:
    names = sorted(offered)
    if value in names:
        return
    near = difflib.get_close_matches(value, names, n=3, cutoff=0.4) or names[:5]
    listed = ", ".join(name[:100] for name in near)
    msg = (
        f"{argument} {value[:100]!r} is not offered by OpenCode for this folder; nothing was sent."
        f" {len(names)} are, for example: {listed or 'none'}. {more}"
    )
    raise InvalidArgumentError(msg.strip())

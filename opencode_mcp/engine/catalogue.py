"""What callers may choose from: the models and agents of a folder, and whether OpenCode is there.

Only what a caller can use is told: a name that no argument takes is none, helpers of OpenCode's
own are not for callers (facts 11.4), and sub-agents are for agents. Nothing else of a provider is
ever read here: its options hold keys.
"""

from __future__ import annotations

import asyncio
import difflib
import json
from typing import TYPE_CHECKING, NamedTuple

from opencode_mcp.engine.pinning import Listing, PinnedLists
from opencode_mcp.engine.sharing import SharedReads
from opencode_mcp.errors import InvalidArgumentError
from opencode_mcp.opencode_errors import OpencodeError, OpencodeUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opencode_mcp.engine.instances import Instances
    from opencode_mcp.opencode.models import Agent, ProviderModel, Providers

#: how long the look at OpenCode may take that no caller waits for; a status took 1.9 s at worst
#: under load (facts 12.5)
LOOK_S = 2.0
#: the longest name that an argument takes (contract §1)
_MAX_NAME_CHARS = 200
#: of what is told besides; a list is kept for its readers, so it must stay small
_TITLE_CHARS = 100
_DESCRIPTION_CHARS = 300
#: of the names of one model's variants, in JSON's longest spelling of them
_VARIANTS_CHARS = 1_000
#: hidden too, unless a configuration says otherwise (facts 11.4)
_HELPERS = frozenset({"compaction", "summary", "title"})
#: one without a mode is for all
_FOR_CALLERS = frozenset({"primary", "all", None})
_NAMED = 5
_LONGEST_SHOWN = 100


class OfferedModel(NamedTuple):
    """A model: `id` is "provider/model"; None: OpenCode does not say."""

    id: str
    name: str | None
    context_tokens: int | None
    output_tokens: int | None
    variants: tuple[str, ...]
    #: so many that they are not all told
    has_more_variants: bool
    calls_tools: bool | None


class OfferedAgent(NamedTuple):
    """An agent that a caller may name; `model`: the one that it uses unless told otherwise."""

    name: str
    description: str | None
    mode: str | None
    model: str | None


class Sign(NamedTuple):
    """What OpenCode said to a look: its version, or why it said nothing (an `error.name`)."""

    version: str | None
    fault: str | None


class Catalogue:
    """Reads what OpenCode offers. Calls that come together share what is read."""

    def __init__(self, instances: Instances) -> None:
        self._instances = instances
        self._models: PinnedLists[OfferedModel] = PinnedLists()
        self._agents: PinnedLists[OfferedAgent] = PinnedLists()
        self._providers_read: SharedReads[tuple[OfferedModel, ...]] = SharedReads()
        self._agents_read: SharedReads[tuple[OfferedAgent, ...]] = SharedReads()

    async def close(self) -> None:
        """Stop what is still read for calls that are gone."""
        await self._providers_read.close()
        await self._agents_read.close()

    async def look(self) -> Sign | None:
        """Ask OpenCode for a sign of life, for `LOOK_S` seconds at most.

        None: it was not asked, because it is a managed one that this process has not got up. It is
        never started for this, nor is its start waited for.
        """
        try:
            async with asyncio.timeout(LOOK_S):
                connection = await self._instances.at_hand()
                if connection is None:
                    return None
                return Sign((await connection.client.health()).version, None)
        except OpencodeError as error:
            return Sign(None, error.name)
        except TimeoutError:
            return Sign(None, OpencodeUnavailableError.name)

    async def models(
        self, directory: str, *, provider: str | None = None, snapshot: str | None = None
    ) -> Listing[OfferedModel]:
        """Return the models of a folder, by id; with `provider` only that one's.

        Raises InvalidArgumentError for a provider that is not set up, SnapshotExpiredError, and
        what `Instances.own` and a read raise.
        """

        async def read() -> tuple[OfferedModel, ...]:
            models = await self._providers_read.get(directory, lambda: self._read_models(directory))
            return models if provider is None else _of_provider(models, provider)

        return await self._models.get((directory, provider or ""), snapshot, read)

    async def agents(self, directory: str, *, snapshot: str | None = None) -> Listing[OfferedAgent]:
        """Return the agents of a folder that a caller may name. Raises as `models`."""

        async def read() -> tuple[OfferedAgent, ...]:
            return await self._agents_read.get(directory, lambda: self._read_agents(directory))

        return await self._agents.get((directory,), snapshot, read)

    async def _read_models(self, directory: str) -> tuple[OfferedModel, ...]:
        client = (await self._instances.own()).client
        return offered_models(await client.providers(directory))

    async def _read_agents(self, directory: str) -> tuple[OfferedAgent, ...]:
        client = (await self._instances.own()).client
        return offered_agents(await client.agents(directory))


def offered_models(providers: Providers) -> tuple[OfferedModel, ...]:
    """Return the models that a caller can name, by id: OpenCode's order may change."""
    models = [
        _offered(f"{provider.id}/{name}", model)
        for provider in providers.providers
        for name, model in provider.models.items()
        if provider.id and name and "/" not in provider.id
    ]
    return tuple(sorted((one for one in models if _is_word(one.id)), key=lambda one: one.id))


def _offered(model_id: str, model: ProviderModel) -> OfferedModel:
    named = [name for name in model.variants if _is_line(name)]
    variants: list[str] = []
    left = _VARIANTS_CHARS
    for name in named:
        left -= len(json.dumps(name))
        if left < 0:
            break
        variants.append(name)
    return OfferedModel(
        id=model_id,
        name=_brief(model.name, _TITLE_CHARS),
        context_tokens=model.limit.context,
        output_tokens=model.limit.output,
        variants=tuple(variants),
        has_more_variants=len(variants) < len(named),
        calls_tools=model.capabilities.calls_tools,
    )


def offered_agents(agents: Iterable[Agent]) -> tuple[OfferedAgent, ...]:
    """Return the agents that a caller may name, by name."""
    offered = [
        OfferedAgent(
            name=agent.name,
            description=_brief(agent.description, _DESCRIPTION_CHARS),
            mode=agent.mode,
            model=agent.model,
        )
        for agent in agents
        if not agent.hidden and agent.name not in _HELPERS and agent.mode in _FOR_CALLERS
    ]
    return tuple(sorted((one for one in offered if _is_line(one.name)), key=lambda one: one.name))


def _brief(text: str | None, limit: int) -> str | None:
    """Return a text as one short line: a list must not be taken for another."""
    line = " ".join((text or "").split())
    return (line if len(line) <= limit else line[: limit - 1] + "…") or None


def _is_line(name: str) -> bool:
    """Whether an argument takes the name, and a line of text shows it as it is."""
    return 0 < len(name) <= _MAX_NAME_CHARS and name.isprintable()


def _is_word(name: str) -> bool:
    return _is_line(name) and not any(character.isspace() for character in name)


def _of_provider(models: tuple[OfferedModel, ...], provider: str) -> tuple[OfferedModel, ...]:
    found = tuple(model for model in models if model.id.startswith(f"{provider}/"))
    if found and "/" not in provider:
        return found
    known = sorted({model.id.partition("/")[0] for model in models})
    near = difflib.get_close_matches(provider, known, n=3, cutoff=0.4) or known[:_NAMED]
    listed = ", ".join(name[:_LONGEST_SHOWN] for name in near)
    msg = (
        f"provider {provider[:_LONGEST_SHOWN]!r} is not set up in OpenCode for this folder."
        f" {len(known)} are, for example: {listed or 'none'}"
    )
    raise InvalidArgumentError(msg)

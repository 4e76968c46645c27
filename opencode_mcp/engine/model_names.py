"""Which model a name without its provider means."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING

from opencode_mcp.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opencode_mcp.engine.requests import LooseModel, StartRequest
    from opencode_mcp.opencode.client import OpencodeClient
    from opencode_mcp.opencode.models import Provider

_SHOWN = 5


async def with_full_model(
    client: OpencodeClient, directory: str, request: StartRequest
) -> StartRequest:
    """Return the request with its model named in full. Raises InvalidArgumentError."""
    if request.loose_model is None:
        return request
    providers = (await client.providers(directory)).providers
    return replace(request, model=full_model_name(request.loose_model, providers))


def full_model_name(wanted: LooseModel, providers: Sequence[Provider]) -> str:
    """Return the `provider/model` that a name means: one already, or a model's bare name.

    A bare name that several providers offer means that of the preferred one, if it is among them.
    Raises InvalidArgumentError, naming what is allowed: nothing is guessed.
    """
    name = wanted.name
    offered = [(provider.id, model) for provider in providers for model in provider.models]
    full = [f"{provider}/{model}" for provider, model in offered]
    if name in full:
        return name
    holders = [provider for provider, model in offered if model == name]
    if wanted.preferred in holders:
        return f"{wanted.preferred}/{name}"
    if len(holders) == 1:
        return f"{holders[0]}/{name}"
    shown = repr(name[:100])
    if holders:
        listed = _listed([f"{provider}/{name}" for provider in holders])
        msg = f"model {shown} is offered by {len(holders)} providers: give one of {listed}."
    else:
        near = difflib.get_close_matches(name, [model for _, model in offered], n=3, cutoff=0.4)
        alike = [f"{provider}/{model}" for provider, model in offered if model in near]
        listed = _listed(alike or sorted(full)) or "none"
        msg = (
            f"model {shown} is not offered by OpenCode for this folder. {len(full)} are, for"
            f" example: {listed}. Leave model out for the default."
        )
    msg += " Nothing was sent."
    raise InvalidArgumentError(msg)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:100] for name in names[:_SHOWN])

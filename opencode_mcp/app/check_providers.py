"""Look at what OpenCode offers: providers with a key, the default model, the default agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.app.findings import Finding, ok, problem, skipped, warning
from opencode_mcp.engine.catalogue import offered_agents
from opencode_mcp.opencode_errors import OpencodeError
from opencode_mcp.records import InstanceKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opencode_mcp.opencode.client import OpencodeClient
    from opencode_mcp.opencode.models import Catalogue, Providers
    from opencode_mcp.settings import Settings

#: OpenCode's own models: some work without a key
_OWN = "opencode"
_MOST_NAMED = 8


async def check_models(
    client: OpencodeClient, settings: Settings, environ: Mapping[str, str]
) -> list[Finding]:
    """Say which providers have keys, and whether the defaults exist, in the default folder."""
    try:
        folder = str(settings.default_cwd or (await client.paths()).directory)
        catalogue = await client.catalogue(folder)
        providers = await client.providers(folder)
        agents = {agent.name for agent in offered_agents(await client.agents(folder))}
    except OpencodeError as error:
        return [skipped("providers", f"OpenCode does not tell: {error}")]
    findings = [_connected(catalogue, settings), *_withheld(catalogue, settings, environ)]
    if settings.default_model is not None:
        findings.append(_model(settings.default_model, catalogue, providers, settings))
    if settings.default_agent is not None:
        findings.append(_agent(settings.default_agent, agents))
    return findings


def _connected(catalogue: Catalogue, settings: Settings) -> Finding:
    names = sorted(catalogue.connected)
    text = ", ".join(names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        text += f" and {len(names) - _MOST_NAMED} more"
    if not names:
        text = "none has a key, so no model can be used"
        return problem("providers", text, _how_to_give_a_key(settings, "a provider", ()))
    if names == [_OWN]:
        text = "only OpenCode's own models (opencode): no provider has a key"
        return warning("providers", text, _how_to_give_a_key(settings, "a provider", ()))
    return ok("providers", f"set up: {text}")


def _withheld(
    catalogue: Catalogue, settings: Settings, environ: Mapping[str, str]
) -> list[Finding]:
    """Name keys that are set here and do not reach the OpenCode that we start."""
    if settings.mode is InstanceKind.ATTACH:
        return []
    missing = [known for known in catalogue.all if known.id not in catalogue.connected]
    names = sorted({name for known in missing for name in known.env if environ.get(name)})
    if not names:
        return []
    text = f"{', '.join(names[:_MOST_NAMED])}: set here, and not passed to OpenCode"
    remedy = f"set CHILD_ENV={','.join(names[:_MOST_NAMED])} if agents may use it"
    return [warning("providers", text, remedy)]


def _model(model: str, catalogue: Catalogue, providers: Providers, settings: Settings) -> Finding:
    provider_id, _, model_id = model.partition("/")
    offered = {provider.id: provider.models for provider in providers.providers}
    if provider_id in offered:
        if model_id in offered[provider_id]:
            return ok("model", f"{model} (DEFAULT_MODEL) is there")
        text = f"{provider_id} has no model {model_id!r} (DEFAULT_MODEL)"
        return problem("model", text, "`opencode models` lists what there is")
    known = next((known for known in catalogue.all if known.id == provider_id), None)
    if known is None:
        text = f"OpenCode knows no provider {provider_id!r} (DEFAULT_MODEL={model})"
        return problem("model", text, "mend DEFAULT_MODEL, or add the provider to opencode.json")
    text = f"{provider_id} has no key, and DEFAULT_MODEL={model} needs one"
    return problem("model", text, _how_to_give_a_key(settings, provider_id, known.env))


def _agent(agent: str, agents: set[str]) -> Finding:
    if agent in agents:
        return ok("agent", f"{agent} (DEFAULT_AGENT) is there")
    text = f"OpenCode offers callers no agent {agent!r} (DEFAULT_AGENT)"
    return problem("agent", text, f"set it to one of {', '.join(sorted(agents))}")


def _how_to_give_a_key(
    settings: Settings, provider: str, variables: tuple[str, ...] | list[str]
) -> str:
    """Return what to do so that OpenCode has a provider's key."""
    if settings.mode is InstanceKind.ATTACH:
        return f"give {provider} its key where that OpenCode runs (`opencode auth login`)"
    name = " or ".join(variables) or "its variable (ANTHROPIC_API_KEY, say)"
    return (
        f"set {name} here and name it in CHILD_ENV, or run `opencode auth login` with this HOME"
        " (it writes auth.json into OpenCode's data folder)"
    )

"""Pages of what there is to choose from: bounded, whatever a catalogue holds (contract §3).

An id is never cut: what callers cannot name is not offered, and what is told of it is short
(`engine/catalogue.py`). A page ends early where it would grow too large, so that the next one goes
on without a gap.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, cast

from opencode_mcp.callers.sizing import short

if TYPE_CHECKING:
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.callers.wire_parts import OfferedAgent as AgentEntry
    from opencode_mcp.callers.wire_parts import OfferedModel as ModelEntry
    from opencode_mcp.engine.catalogue import OfferedAgent, OfferedModel
    from opencode_mcp.engine.pinning import Listing

Item = TypeVar("Item")

#: of the entries and their lines, in the longest spelling that JSON has for them; the rest of
#: 45,000 is for what stands around them
_PAGE_CHARS = 40_000


class Page(NamedTuple):
    """Which entries are wanted."""

    offset: int
    limit: int


class Described(NamedTuple):
    """One entry as it leaves: for programs, as a line of text, and what of it was cut."""

    entry: object
    line: str
    cut: str | None = None


@dataclass(frozen=True, slots=True)
class Kind(Generic[Item]):
    """What a list is of. `use`: what to do with an entry; `empty`: what it means if none is."""

    field: Literal["models", "agents", "roots"]
    describe: Callable[[Item], Described]
    use: str
    empty: str


def paged(kind: Kind[Item], listing: Listing[Item], page: Page, heading: str) -> Result:
    """Return a page of a list; `heading` says whose list it is."""
    total = len(listing.items)
    shown = _shown(kind, listing, page)
    end = page.offset + len(shown)
    more = end < total
    about = f"{total} {heading}" + (f", from {page.offset}" if page.offset else "")
    last = [kind.use if shown else kind.empty if total == 0 else "None from there on."]
    if more:
        last.append(f"More with offset {end} and snapshot-id {listing.snapshot_id}.")
    result: Result = {
        "kind": "info",
        "status": "ok",
        "content": "\n".join([about, *(one.line for one in shown), *last]),
        "total": total,
        "offset": page.offset,
        "hasMore": more,
        "snapshotId": listing.snapshot_id,
    }
    cast("dict[str, Any]", result)[kind.field] = [one.entry for one in shown]
    if more:
        result["nextOffset"] = end
    cut = sorted({one.cut for one in shown if one.cut})
    if cut:
        result["truncated"], result["omittedFields"] = True, cut
    return result


def _shown(kind: Kind[Item], listing: Listing[Item], page: Page) -> list[Described]:
    shown: list[Described] = []
    left = _PAGE_CHARS
    for item in listing.items[page.offset : page.offset + page.limit]:
        one = kind.describe(item)
        left -= len(json.dumps(one.entry)) + len(json.dumps(one.line))
        if left < 0 and shown:
            break
        shown.append(one)
    return shown


def _describe_model(model: OfferedModel) -> Described:
    entry: ModelEntry = {"id": model.id}
    facts = [model.id]
    if model.name is not None:
        facts.append(model.name)
    if model.context_tokens is not None:
        entry["contextTokens"] = model.context_tokens
        facts.append(f"context {model.context_tokens}")
    if model.output_tokens is not None:
        entry["outputTokens"] = model.output_tokens
        facts.append(f"output {model.output_tokens}")
    entry["variants"] = list(model.variants)
    if model.variants:
        more = " and more" if model.has_more_variants else ""
        facts.append(f"variants {', '.join(model.variants)}{more}")
    if model.calls_tools is not None:
        entry["toolCalls"] = model.calls_tools
    if model.calls_tools is False:
        facts.append("cannot call tools: no use to an agent")
    cut = "models.variants" if model.has_more_variants else None
    return Described(entry, " · ".join(facts), cut)


def _describe_agent(agent: OfferedAgent) -> Described:
    entry: AgentEntry = {"name": agent.name}
    facts = [agent.name]
    if agent.model is not None:
        entry["model"] = short(agent.model)
        facts.append(f"model {short(agent.model)}")
    if agent.description is not None:
        entry["description"] = agent.description
        facts.append(agent.description)
    return Described(entry, " · ".join(facts))


def _describe_root(path: str) -> Described:
    return Described(path, path)


MODELS: Kind[OfferedModel] = Kind(
    "models",
    _describe_model,
    "An id is what `model` of opencode takes, a variant what `variant` takes.",
    "None: no provider is set up in OpenCode (opencode auth login, or its configuration).",
)
AGENTS: Kind[OfferedAgent] = Kind(
    "agents",
    _describe_agent,
    "The first word is what `agent` of opencode takes.",
    "None: OpenCode has no agent here that a caller may name.",
)
ROOTS: Kind[str] = Kind(
    "roots", _describe_root, "`cwd` of opencode may be one of these or lie below.", "None."
)

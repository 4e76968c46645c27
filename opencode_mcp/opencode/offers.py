"""What OpenCode tells of the models and agents that it offers, beyond their names.

A plug-in or a configuration puts there what it likes, and every turn's admission reads the same
lists: what has not the kind we know counts as absent, and never makes a list unreadable.
Shapes: `GET /config/providers` and `GET /agent`, read on 1.18.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from opencode_mcp.opencode.fields import FromOpencode

#: no limit of a model is larger; JSON numbers beyond it lose digits in some clients
_MOST_TOKENS = 2**53


def _tokens(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 < value <= _MOST_TOKENS else None


def _flag(value: object) -> object:
    return value if isinstance(value, bool) else None


def _text(value: object) -> object:
    return value if isinstance(value, str) else None


def _object(value: object) -> object:
    return value if isinstance(value, dict) else {}


def _names(value: object) -> object:
    return tuple(value) if isinstance(value, dict) else ()


def _full_name(value: object) -> object:
    """Return "provider/model" for OpenCode's object of the two."""
    found = value if isinstance(value, dict) else {}
    provider, model = found.get("providerID"), found.get("modelID")
    is_whole = isinstance(provider, str) and isinstance(model, str)
    return f"{provider}/{model}" if is_whole else None


TokenLimit = Annotated[int | None, BeforeValidator(_tokens)]
Flag = Annotated[bool | None, BeforeValidator(_flag)]
Text = Annotated[str | None, BeforeValidator(_text)]
#: the names of a model's variants; what each one sets is its provider's business
VariantNames = Annotated[tuple[str, ...], BeforeValidator(_names)]
#: "provider/model"
ModelName = Annotated[str | None, BeforeValidator(_full_name)]


class ModelLimit(FromOpencode):
    """How many tokens fit into a model, and how many come out of it; 0 is "not known"."""

    context: TokenLimit = None
    output: TokenLimit = None


class Capabilities(FromOpencode):
    """What a model can do, as far as we tell it: without calls of tools an agent can only talk."""

    calls_tools: Flag = Field(default=None, alias="toolcall")


Limit = Annotated[ModelLimit, BeforeValidator(_object)]
Abilities = Annotated[Capabilities, BeforeValidator(_object)]

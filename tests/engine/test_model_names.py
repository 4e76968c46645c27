"""Which model a bare name means: the one that is offered, or none, never a guess."""

from __future__ import annotations

import pytest

from opencode_mcp.engine.model_names import full_model_name
from opencode_mcp.engine.requests import LooseModel
from opencode_mcp.errors import InvalidArgumentError
from opencode_mcp.opencode.models import Providers

_OFFERED = {
    "openai": ["gpt-5.2", "gpt-5.2-codex"],
    "azure": ["gpt-5.2", "mini"],
    "openrouter": ["openai/gpt-oss", "openai/gpt-5.2"],
}
_PROVIDERS = Providers.model_validate(
    {
        "providers": [
            {"id": provider, "models": {name: {"id": name} for name in names}}
            for provider, names in _OFFERED.items()
        ]
    }
).providers


@pytest.mark.parametrize(
    ("name", "preferred", "meant"),
    [
        pytest.param("azure/mini", None, "azure/mini", id="in-full"),
        pytest.param("mini", None, "azure/mini", id="one-provider"),
        pytest.param("mini", "openai", "azure/mini", id="one-provider-not-the-preferred"),
        pytest.param("gpt-5.2", "azure", "azure/gpt-5.2", id="several-one-preferred"),
        pytest.param("openai/gpt-oss", None, "openrouter/openai/gpt-oss", id="bare-with-slash"),
        pytest.param("openai/gpt-5.2", "openrouter", "openai/gpt-5.2", id="in-full-goes-first"),
    ],
)
def test_a_name_means_what_is_offered(name: str, preferred: str | None, meant: str) -> None:
    assert full_model_name(LooseModel(name, preferred), _PROVIDERS) == meant


@pytest.mark.parametrize(
    ("name", "preferred", "told"),
    [
        pytest.param("gpt-5.2", None, ["openai/gpt-5.2", "azure/gpt-5.2"], id="several"),
        pytest.param("gpt-5.2", "openrouter", ["openai/gpt-5.2"], id="several-none-preferred"),
        pytest.param("gpt-5.2-codx", None, ["openai/gpt-5.2-codex"], id="misspelt"),
        pytest.param("claude", None, ["azure/gpt-5.2", "6 are"], id="unlike-any"),
        pytest.param("azure/gpt-5.2-codex", None, ["openai/gpt-5.2-codex"], id="wrong-provider"),
    ],
)
def test_any_other_name_is_refused_with_what_is_offered(
    name: str, preferred: str | None, told: list[str]
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        full_model_name(LooseModel(name, preferred), _PROVIDERS)
    assert all(text in str(refused.value) for text in [*told, repr(name), "Nothing was sent"])


def test_where_nothing_is_offered_it_says_so() -> None:
    with pytest.raises(InvalidArgumentError, match="0 are, for example: none"):
        full_model_name(LooseModel("x" * 200, None), [])

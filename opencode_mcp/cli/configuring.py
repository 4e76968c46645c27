"""`opencode-mcp config`: the settings in force, and where each comes from."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opencode_mcp.cli.screen import note, print_json, print_table
from opencode_mcp.cli.settings_options import SettingsCommand, load, takes_settings
from opencode_mcp.settings_model import NAMES, SECRETS, variable

if TYPE_CHECKING:
    from opencode_mcp.settings import Loaded

_DEFAULT = "default"


@click.command(cls=SettingsCommand, short_help="The settings in force, and their sources.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, for programs.")
@click.option("--given", is_flag=True, help="Only what is not a plain default.")
@takes_settings
@click.pass_context
def config(context: click.Context, *, as_json: bool, given: bool) -> None:
    """Show the settings in force and where each comes from; secrets are hidden.

    Precedence: option, environment, TOML file, OpenCode's own variables, default. Exits with 2,
    and all that is wrong, if they are wrong.
    """
    loaded = load(context)
    names = [name for name in NAMES if not given or name in loaded.sources]
    if as_json:
        print_json(
            {
                "configFile": str(loaded.config_file) if loaded.config_file else None,
                "settings": [_entry(loaded, name) for name in names],
                "ignoredVariables": list(loaded.settings.ignored_variables),
            }
        )
        return
    print_table(
        ("SETTING", "VALUE", "FROM"),
        [(name, _text(loaded, name), loaded.sources.get(name, _DEFAULT)) for name in names],
        folds=(1, 2),
    )
    if loaded.config_file is None:
        note("no configuration file was read")
    for name in loaded.settings.ignored_variables:
        note(f"ignored, a service link of Kubernetes: {name}")


def _entry(loaded: Loaded, name: str) -> dict[str, Any]:
    value = getattr(loaded.settings, name)
    entry = {
        "name": name,
        "variable": variable(name),
        "value": None if name in SECRETS else _plain(value),
        "source": loaded.sources.get(name, _DEFAULT),
    }
    return entry | ({"secret": True, "isSet": bool(value)} if name in SECRETS else {})


def _plain(value: object) -> object:
    """Return a value as JSON can hold it."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


def _text(loaded: Loaded, name: str) -> str:
    value = getattr(loaded.settings, name)
    if name == "auth_tokens" and value:  # the names are no secret, and tell who may call
        return f"{', '.join(token.name for token in value)} (tokens hidden)"
    if name in SECRETS:
        return "(hidden)" if value else "-"
    plain = _plain(value)
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, list):
        return ", ".join(map(str, plain)) or "-"
    return "-" if plain is None else str(plain)

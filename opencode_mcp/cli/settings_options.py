"""Every setting that is no secret as an option of a command, made from the settings model.

A secret has none: process lists show a command line to everybody on the machine.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import click

from opencode_mcp.cli.screen import EXIT_CODES, EXIT_USAGE, leave
from opencode_mcp.errors import ConfigError
from opencode_mcp.settings import allowed_values, load_with_sources
from opencode_mcp.settings_model import NAMES, SECRETS, Settings
from opencode_mcp.settings_serving import Note

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from opencode_mcp.settings import Loaded

    Function = TypeVar("Function", bound=Callable[..., Any])

#: where a command keeps what its options said, in click's context
_META = "opencode_mcp.settings"
#: longer choices make no readable metavar
_LONGEST_METAVAR = 30
_ELSEWHERE = "Every setting is an option here, too; `opencode-mcp serve --help` lists them."


class SettingOption(click.Option):
    """An option that stands for a setting."""


class SettingsCommand(click.Command):
    """A command with a settings section in its help, or a sentence that tells where it is."""

    def __init__(self, *args: Any, shows_settings: bool = False, **more: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*args, **more)
        self.epilog = EXIT_CODES
        self._shows_settings = shows_settings

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options first, then the settings."""
        own: list[tuple[str, str]] = []
        settings: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                (settings if isinstance(param, SettingOption) else own).append(record)
        with formatter.section("Options"):
            formatter.write_dl(own)
        if self._shows_settings:
            with formatter.section("Settings (each also as OPENCODE_MCP_… and as a TOML key)"):
                formatter.write_dl(settings)
        else:
            formatter.write_paragraph()
            formatter.write_text(_ELSEWHERE)


def takes_settings(function: Function) -> Function:
    """Give a command an option for each setting, and `--config`; `load` returns what they say."""
    params = [_option(name) for name in NAMES if name not in SECRETS]
    config = click.Option(
        ["--config"],
        type=click.Path(path_type=Path, dir_okay=False),
        expose_value=False,
        callback=_remember,
        metavar="FILE",
        help="A TOML file with settings; the environment (OPENCODE_MCP_…) wins over it.",
    )
    known: list[click.Parameter] = getattr(function, "__click_params__", [])
    # click reads them back to front
    function.__click_params__ = [*reversed([config, *params]), *known]  # type: ignore[attr-defined]
    return function


def load(context: click.Context, *, settle: bool = True) -> Loaded:
    """Return the settings that this command runs with; leave with 2 and all faults otherwise.

    `settle`: as in `load_with_sources`.
    """
    try:
        return load_or_raise(context, settle=settle)
    except ConfigError as error:
        leave(str(error), EXIT_USAGE)


def load_or_raise(context: click.Context, *, settle: bool = True) -> Loaded:
    """Return the settings that this command runs with, or raise a ConfigError."""
    options: dict[str, object] = dict(context.meta.get(_META, {}))
    config = options.pop("config", None) or context.obj
    return load_with_sources(
        os.environ,
        config_file=config if isinstance(config, Path) else None,
        overrides=options,
        settle=settle,
    )


def _remember(context: click.Context, param: click.Parameter, value: object) -> None:
    if value is not None and param.name is not None:
        context.meta.setdefault(_META, {})[param.name] = value


def _option(name: str) -> click.Option:
    info = Settings.model_fields[name]
    flag = "--" + name.replace("_", "-")
    if info.annotation is bool:
        return SettingOption(
            [f"{flag}/--no-{flag[2:]}"],
            default=None,
            expose_value=False,
            callback=_remember,
            help=_help(name),
        )
    return SettingOption(
        [flag],
        type=str,  # checked by the model, which shows all faults at once
        expose_value=False,
        callback=_remember,
        metavar=_metavar(name),
        help=_help(name),
    )


def _help(name: str) -> str:
    """Return the model's sentence, then what is allowed and the default."""
    info = Settings.model_fields[name]
    note = next((item for item in info.metadata if isinstance(item, Note)), Note())
    default = note.default
    if not default and info.default not in (None, ()):
        default = str(info.default).lower() if info.annotation is bool else str(info.default)
    facts = [] if info.annotation is bool or _choices(name) else [allowed_values(name)]
    facts += [f"default: {default}"] if default and default != "none" else []
    text = f"{info.description} [{'; '.join(facts)}]" if facts else str(info.description)
    return text.replace("`", "")


def _metavar(name: str) -> str:
    choices = "|".join(_choices(name))
    if choices and len(choices) <= _LONGEST_METAVAR:
        return f"[{choices}]"
    annotation = Settings.model_fields[name].annotation
    kinds = {annotation, *get_args(annotation)}
    if int in kinds:
        return "N"
    return "PATH" if Path in kinds else "TEXT"


def _choices(name: str) -> list[str]:
    annotation = Settings.model_fields[name].annotation
    return [
        choice
        for kind in (annotation, *get_args(annotation))
        for choice in _members(kind)
        if get_origin(annotation) is not tuple
    ]


def _members(kind: object) -> list[str]:
    if get_origin(kind) is Literal:
        return [str(choice) for choice in get_args(kind)]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return [choice.value for choice in kind]
    return []

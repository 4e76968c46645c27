"""Load the settings: read the sources, check each value, check how they fit, report all faults.

`load_settings` is the only way to a `Settings`; it is called once, at start-up, and its result is
passed down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic import ValidationError

from opencode_mcp.errors import ConfigError
from opencode_mcp.records import InstanceKind, Sandbox
from opencode_mcp.settings_checks import check_together
from opencode_mcp.settings_env import Reading, read_sources
from opencode_mcp.settings_files import password_in, tokens_in
from opencode_mcp.settings_folders import settle_folders, wanted_default
from opencode_mcp.settings_model import Settings
from opencode_mcp.settings_serving import Note
from opencode_mcp.settings_values import NEVER_FOR_CHILD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = [
    "Loaded",
    "Settings",
    "allowed_values",
    "child_environment",
    "load_settings",
    "load_with_sources",
]

_CHILD_NAMES = frozenset({"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "SHELL"})
_CHILD_PREFIXES = ("LC_", "XDG_", "SSL_", "OPENCODE_")
_CHILD_SUFFIX = "_PROXY"
_AIRGAP = (
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_SHARE",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_MODELS_FETCH",
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force, and where each one that is not a plain default comes from."""

    settings: Settings
    #: by setting name, in words for a person: a variable, an option, a key and its file, a reason
    sources: Mapping[str, str]
    #: the configuration file that was read, if there is one
    config_file: Path | None


def load_settings(
    environ: Mapping[str, str],
    *,
    config_file: Path | None = None,
    overrides: Mapping[str, object] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """Return the settings in force, or raise a ConfigError that lists every fault.

    `overrides` come from the command line, by setting name; `None` and "" mean not given. `cwd` is
    the folder this process was started in, unless given. Reads the configuration file and the
    password file; creates nothing.
    """
    return load_with_sources(
        environ, config_file=config_file, overrides=overrides, cwd=cwd
    ).settings


def load_with_sources(
    environ: Mapping[str, str],
    *,
    config_file: Path | None = None,
    overrides: Mapping[str, object] | None = None,
    cwd: Path | None = None,
    settle: bool = True,
) -> Loaded:
    """Return the settings and where each comes from; as `load_settings`.

    Without `settle`, the folders stay as they were given: for what runs no session, and may be
    called from anywhere.
    """
    reading = read_sources(environ, config_file, overrides or {})
    settings, wrong = _checked_one_by_one(reading)
    settings = _with_tokens(settings, reading, wrong)
    check_together(settings, reading, wrong)
    finished: dict[str, object] = {"ignored_variables": tuple(reading.ignored)}
    if settings.server_password_file is not None:
        finished["server_password"] = password_in(settings.server_password_file, reading)
    if settle and not wrong & {"mode", "default_cwd", "allowed_roots", "remote_paths"}:
        finished |= settle_folders(settings, environ, cwd, reading)
    if reading.faults:
        count = len(reading.faults)
        head = f"{count} settings are wrong:" if count > 1 else "a setting is wrong:"
        raise ConfigError("\n  ".join([head, *reading.faults]))
    return Loaded(
        settings=settings.model_copy(update=finished),
        sources=_sources(settings, reading, environ),
        config_file=reading.files[0] if reading.files else None,
    )


def _sources(settings: Settings, reading: Reading, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return where each setting comes from; those that are plain defaults are left out."""
    given = {name: item.source for name, item in reading.given.items()}
    implied: dict[str, str] = {}
    for itself, file in (
        ("server_password", "server_password_file"),
        ("auth_tokens", "auth_tokens_file"),
    ):
        if file in given:
            implied[itself] = f"the file that {given[file]} names"
    if "server_url" in given:
        implied["mode"] = f"default, since {given['server_url']} is set"
    if settings.transport == "http":
        implied["max_sandbox"] = "default for http"
    wanted, origin = wanted_default(settings, environ, None)
    if wanted is not None and origin:
        implied["default_cwd"] = f"default, {origin}"
    if wanted is not None and not settings.allowed_roots:
        implied["allowed_roots"] = "default, the default folder"
    return implied | given


def _checked_one_by_one(reading: Reading) -> tuple[Settings, set[str]]:
    """Return settings in which every wrong value is left out, and the names of these."""
    raw = {name: given.value for name, given in reading.given.items()}
    by_url = InstanceKind.ATTACH if "server_url" in raw else InstanceKind.MANAGED
    raw.setdefault("mode", by_url)
    if str(raw.get("transport", "")).strip().lower() == "http":  # anybody may be at the other end
        raw.setdefault("max_sandbox", Sandbox.WORKSPACE_WRITE)
    wrong: set[str] = set()
    try:
        return Settings.model_validate(raw), wrong
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            name = str(detail["loc"][0])
            if name not in wrong:  # a list may have several faults: its text covers all
                reading.fault(name, _reason(name, detail.get("ctx", {}).get("error")))
            wrong.add(name)
    right = {name: value for name, value in raw.items() if name not in wrong}
    right.setdefault("mode", by_url)
    return Settings.model_validate(right), wrong


def _with_tokens(settings: Settings, reading: Reading, wrong: set[str]) -> Settings:
    """Return the settings with the tokens of their file, which decide what else is allowed."""
    if settings.auth_tokens_file is None:
        return settings
    try:
        tokens = tokens_in(settings.auth_tokens_file)
    except ValueError as error:
        reading.fault("auth_tokens_file", str(error))
        wrong.add("auth_tokens_file")
        return settings
    return settings.model_copy(update={"auth_tokens": tokens})


def _reason(name: str, ours: object) -> str:
    return str(ours) if isinstance(ours, ValueError) else f"must be {allowed_values(name)}"


def allowed_values(name: str) -> str:
    """Return what a setting may be, in words that follow "must be"."""
    info = Settings.model_fields[name]
    note = next((item for item in info.metadata if isinstance(item, Note)), Note())
    if note.allowed:
        return note.allowed
    if info.annotation is bool:
        return "true or false"
    choices = _choices(info.annotation)
    if choices:
        return " or ".join([", ".join(choices[:-1]), choices[-1]])
    bounds = {bound: getattr(item, bound) for item in info.metadata for bound in _bounds(item)}
    return f"a whole number from {bounds['ge']} to {bounds['le']}"


def _bounds(item: object) -> Iterable[str]:
    return (bound for bound in ("ge", "le") if hasattr(item, bound))


def _choices(annotation: Any) -> list[str]:  # noqa: ANN401 - any annotation at all
    if isinstance(annotation, type):
        return [str(choice) for choice in getattr(annotation, "__members__", {}).values()]
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def child_environment(environ: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return what a managed OpenCode may see of our environment (contract §4, `CHILD_ENV`).

    Never our settings, never OpenCode's own password: it is given a fresh one at its start.
    """
    child = {name: value for name, value in environ.items() if _passes(name, settings.child_env)}
    if settings.airgap:
        for name in _AIRGAP:
            child.setdefault(name, "true")
    return child


def _passes(name: str, more: tuple[str, ...]) -> bool:
    if name.startswith(NEVER_FOR_CHILD):
        return False
    if name in _CHILD_NAMES or name.startswith(_CHILD_PREFIXES):
        return True
    if name.upper().endswith(_CHILD_SUFFIX):  # also http_proxy, as curl wants it
        return True
    return any(
        name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted for wanted in more
    )

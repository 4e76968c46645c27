"""Load the settings: read the sources, check each value, check how they fit, report all faults.

`load_settings` is the only way to a `Settings`; it is called once, at start-up, and its result is
passed down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, get_origin

from pydantic import SecretStr, ValidationError

from opencode_mcp.errors import ConfigError
from opencode_mcp.records import ExitAction, InstanceKind
from opencode_mcp.settings_env import Reading, read_sources
from opencode_mcp.settings_folders import settle_folders
from opencode_mcp.settings_model import Note, Settings, variable
from opencode_mcp.settings_values import NEVER_FOR_CHILD, is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["Settings", "allowed_values", "child_environment", "load_settings"]

_CHILD_NAMES = frozenset({"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "SHELL"})
_CHILD_PREFIXES = ("LC_", "XDG_", "SSL_", "OPENCODE_")
_CHILD_SUFFIX = "_PROXY"
_AIRGAP = (
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_SHARE",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_MODELS_FETCH",
)


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
    reading = read_sources(environ, config_file, overrides or {})
    settings, wrong = _checked_one_by_one(reading)
    _check_together(settings, reading, wrong)
    finished: dict[str, object] = {"ignored_variables": tuple(reading.ignored)}
    if settings.server_password_file is not None:
        finished["server_password"] = _password_in(settings.server_password_file, reading)
    if not wrong & {"mode", "default_cwd", "allowed_roots", "remote_paths"}:
        finished |= settle_folders(settings, environ, cwd, reading)
    if reading.faults:
        count = len(reading.faults)
        head = f"{count} settings are wrong:" if count > 1 else "a setting is wrong:"
        raise ConfigError("\n  ".join([head, *reading.faults]))
    return settings.model_copy(update=finished)


def _checked_one_by_one(reading: Reading) -> tuple[Settings, set[str]]:
    """Return settings in which every wrong value is left out, and the names of these."""
    raw = {name: given.value for name, given in reading.given.items()}
    by_url = InstanceKind.ATTACH if "server_url" in raw else InstanceKind.MANAGED
    raw.setdefault("mode", by_url)
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


class Judge(Protocol):
    """Notes a fault of a setting, unless it or one of the others was refused before."""

    def __call__(self, name: str, *others: str, bad: bool, reason: str) -> None: ...


def _check_together(settings: Settings, reading: Reading, wrong: set[str]) -> None:
    """Note what is wrong only in combination; says nothing about values already refused."""

    def judge(name: str, *others: str, bad: bool, reason: str) -> None:
        if bad and not wrong & {name, *others}:
            reading.fault(name, reason)

    _check_connection(settings, judge)
    _check_ceilings(settings, judge)


def _check_connection(settings: Settings, judge: Judge) -> None:
    url = settings.server_url
    attach = settings.mode is InstanceKind.ATTACH
    judge(
        "mode",
        "server_url",
        bad=attach and url is None,
        reason=f"needs {variable('server_url')}, the address of the running OpenCode",
    )
    judge(
        "server_url",
        "allow_insecure_http",
        bad=url is not None
        and url.startswith("http:")
        and not is_loopback(url)
        and not settings.allow_insecure_http,
        reason=f"must be https beyond this machine, or {variable('allow_insecure_http')} be true",
    )
    judge(
        "remote_paths",
        "mode",
        bad=settings.remote_paths and not attach,
        reason="must be false in managed mode: that OpenCode runs on this machine",
    )
    judge(
        "on_exit",
        "mode",
        bad=settings.on_exit is ExitAction.KEEP and not attach,
        reason="must be abort or end in managed mode: that OpenCode stops with its last server",
    )


def _check_ceilings(settings: Settings, judge: Judge) -> None:
    judge(
        "turn_timeout_seconds",
        "max_turn_timeout_seconds",
        bad=settings.turn_timeout_seconds > settings.max_turn_timeout_seconds,
        reason=f"must be at most {variable('max_turn_timeout_seconds')},"
        f" {settings.max_turn_timeout_seconds}",
    )
    judge(
        "default_sandbox",
        "max_sandbox",
        bad=not settings.default_sandbox.is_within(settings.max_sandbox),
        reason=f"must not be wider than {variable('max_sandbox')}, {settings.max_sandbox.value}",
    )
    judge(
        "default_approval_policy",
        "allowed_approval_policies",
        bad=settings.default_approval_policy not in settings.allowed_approval_policies,
        reason=f"must be one of {variable('allowed_approval_policies')},"
        f" {', '.join(settings.allowed_approval_policies)}",
    )


def _password_in(path: Path, reading: Reading) -> SecretStr | None:
    reason = "must be a readable file with one line of UTF-8 text"
    try:
        text = path.read_text(encoding="utf-8")  # also turns \r\n into \n
    except OSError as error:
        reading.fault("server_password_file", f"{reason}: {error.strerror}")
        return None
    except ValueError:
        text = ""
    text = text.removesuffix("\n")
    if not text or "\n" in text:
        reading.fault("server_password_file", reason)
        return None
    return SecretStr(text)


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

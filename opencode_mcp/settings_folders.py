"""Settle the folders in which sessions may run: the default one and the roots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opencode_mcp.records import InstanceKind
from opencode_mcp.roots import is_too_wide, plain_directory, real_directory, shown
from opencode_mcp.settings_model import Settings, variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opencode_mcp.settings_env import Reading

#: Claude Code tells its servers so in which project it was opened
_PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"


def settle_folders(
    settings: Settings, environ: Mapping[str, str], cwd: Path | None, reading: Reading
) -> dict[str, object]:
    """Return `default_cwd` and `allowed_roots` in force, as real paths unless they are remote.

    A default of None: attach, nothing given: OpenCode's own folder, read at the first call; then
    without named roots there are none yet. Faults go to `reading`.
    """
    before = len(reading.faults)
    roots = _named_roots(settings, reading)
    wanted, origin = wanted_default(settings, environ, cwd)
    by = f" ({origin})" if origin else ""
    named = f"{variable('default_cwd')}={shown(str(wanted))}{by}"
    default = None
    if wanted is not None:
        try:
            default = _settled(wanted, settings)
        except ValueError as error:
            reading.faults.append(f"{named}: {error}")
    if default is not None and len(reading.faults) == before:
        fault = _misfit(
            settings, default, roots, environ.get("HOME") or str(Path("~").expanduser())
        )
        if fault:
            reading.faults.append(f"{named}: {fault}")
    if default is not None and not settings.allowed_roots:
        roots = [default]
    return {"default_cwd": default, "allowed_roots": tuple(roots)}


def _named_roots(settings: Settings, reading: Reading) -> list[Path]:
    roots = []
    for root in settings.allowed_roots:
        try:
            roots.append(_settled(root, settings))
        except ValueError as error:
            reading.fault("allowed_roots", f"{shown(str(root))} {error}")
    return roots


def wanted_default(
    settings: Settings, environ: Mapping[str, str], cwd: Path | None
) -> tuple[Path | None, str]:
    """Return the default folder as given, and where it comes from if it was not set."""
    if settings.default_cwd is not None:
        return settings.default_cwd, ""
    if settings.remote_paths:  # folders of this machine mean nothing over there
        return None, ""
    if environ.get(_PROJECT_VARIABLE):
        return Path(environ[_PROJECT_VARIABLE]), f"from {_PROJECT_VARIABLE}"
    if settings.mode is InstanceKind.ATTACH:
        return None, ""
    # "." cannot be settled, and says so: the folder we were started in is gone
    return cwd or _process_folder(), "where this server was started"


def _process_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:
        return Path()


def _settled(path: Path, settings: Settings) -> Path:
    return plain_directory(path) if settings.remote_paths else real_directory(path)


def _misfit(settings: Settings, default: Path, roots: list[Path], home: str) -> str:
    """Return why a default folder does not go with the roots, or ""."""
    if not settings.allowed_roots:
        if not is_too_wide(default, home=home):
            return ""
        return (
            "`/` or the home folder is no root unless it is named: set this to a project folder,"
            f" or {variable('allowed_roots')} to the folders that sessions may use"
        )
    if settings.default_cwd is None or any(default.is_relative_to(root) for root in roots):
        return ""
    return f"must lie within {variable('allowed_roots')}"

"""Look at what is on this machine: the database, the roots, the tokens. Changes nothing."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from opencode_mcp.app.findings import Finding, ok, problem, skipped, warning
from opencode_mcp.counting import counted
from opencode_mcp.errors import StoreError
from opencode_mcp.opencode.locks import locking_works
from opencode_mcp.records import ANONYMOUS, LOCAL
from opencode_mcp.roots import is_too_wide, shown
from opencode_mcp.store.inspecting import Inspection, inspect, newest_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opencode_mcp.settings import Settings

_MIB = 1024 * 1024
#: SQLite needs a few MiB to work in; a database of 10,000 sessions takes some ten
_LITTLE_MIB = 100
_TOO_LITTLE_MIB = 10
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_ELSEWHERE = "make it writable for this user, or set DATABASE to a file in another folder"


def check_database(settings: Settings) -> list[Finding]:
    """Say whether the tracking database can be opened, written, locked, and has room."""
    path = Path(os.path.realpath(settings.database))
    folder = _nearest(path.parent)
    if not os.access(folder, os.W_OK | os.X_OK):
        text = f"{path}: nothing can be written in {folder} as user id {os.geteuid()}"
        return [problem("database", text, _ELSEWHERE)]
    return [_database(path), _room(folder), _locks(folder)]


def _nearest(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def _database(path: Path) -> Finding:
    try:
        found, newest = inspect(path), newest_schema()
    except StoreError as error:
        return problem("database", str(error), "see docs/operations.md, or set another DATABASE")
    if found is None:
        return ok("database", f"{path} is not there yet: the first server makes it")
    return _unusable(path, found, newest) or _usable(path, found, newest)


def _unusable(path: Path, found: Inspection, newest: int) -> Finding | None:
    """Return what stands in the way of every server; None: nothing."""
    text = remedy = ""
    if not found.is_ours:
        text, remedy = f"{path} belongs to another program", "set another DATABASE"
    elif found.schema > newest:
        text = f"{path} has schema {found.schema}, this release knows {newest}"
        remedy = "run the newer release that wrote it"
    elif found.damage:
        text, remedy = f"{path} is damaged: {found.damage}", "stop the servers, restore a backup"
    elif found.write_fault:
        text = f"{path} cannot be written as user id {os.geteuid()}: {found.write_fault}"
        remedy = _ELSEWHERE
    return problem("database", text, remedy) if text else None


def _usable(path: Path, found: Inspection, newest: int) -> Finding:
    text = f"{path}: schema {found.schema}, {counted(found.sessions or 0, 'session')}"
    if found.endings:
        text += f" ({found.endings} waiting for their end to be confirmed)"
    if found.schema < newest:
        text = f"{path} has schema {found.schema}, this release uses {newest}"
        remedy = "make a backup, then run `opencode-mcp migrate`; else the next server does it"
        return warning("database", text, remedy)
    if found.journal != "wal":
        text += f", without a WAL (journal: {found.journal})"
        remedy = "it works, and is slower with several servers: a local disk can have a WAL"
        return warning("database", text, remedy)
    return ok("database", f"{text}, WAL, writable")


def _room(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free // _MIB
    text = f"{free} MiB free in {folder}"
    if free < _TOO_LITTLE_MIB:
        return problem("disk", text, "free space there: what cannot be written down is not sent")
    if free < _LITTLE_MIB:
        return warning("disk", text, "free space there before it runs out")
    return ok("disk", text)


def _locks(folder: Path) -> Finding:
    try:
        locking_works(folder)
    except StoreError as error:
        return problem("locks", str(error), "set DATABASE to a path on a local disk")
    return ok("locks", f"files can be locked in {folder}")


def check_roots(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:
    """Say whether sessions can run where they may."""
    if settings.remote_paths:
        names = ", ".join(map(str, settings.allowed_roots)) or "OpenCode's own folder"
        return [skipped("roots", f"{names}: on OpenCode's machine (REMOTE_PATHS)")]
    if not settings.allowed_roots:
        return [ok("roots", "OpenCode's own folder (no folder is set)")]
    home = environ.get("HOME") or str(Path("~").expanduser())
    return [_root(root, home) for root in settings.allowed_roots]


def _root(root: Path, home: str) -> Finding:
    text = shown(str(root))[1:-1]
    if not os.access(root, os.R_OK | os.X_OK):
        return problem("roots", f"{text} cannot be read as user id {os.geteuid()}", "mend its mode")
    if is_too_wide(root, home=home):
        remedy = "set ALLOWED_ROOTS to the project folders: agents may work in all of it"
        return warning("roots", f"{text} is very wide", remedy)
    if not os.access(root, os.W_OK):
        remedy = "make it writable if agents are to change files; else set MAX_SANDBOX=read-only"
        return warning("roots", f"{text} cannot be written as user id {os.geteuid()}", remedy)
    return ok("roots", f"{text}: readable and writable")


def check_callers(settings: Settings) -> list[Finding]:
    """Say who may call over HTTP; over stdio only what has no effect there."""
    if settings.transport != "http":
        return _without_effect(settings)
    return [*_tokens(settings), *_admins(settings)]


def _without_effect(settings: Settings) -> list[Finding]:
    if not settings.auth_tokens:
        return []
    text = "AUTH_TOKENS have no effect over stdio"
    return [warning("tokens", text, "set TRANSPORT=http to serve callers over HTTP")]


def _admins(settings: Settings) -> list[Finding]:
    """Say which admins nobody can be: mostly a misspelt name."""
    known = {f"token:{token.name}" for token in settings.auth_tokens} or {ANONYMOUS}
    nobody = [name for name in settings.admins if name not in known | {LOCAL}]
    if not nobody:
        return []
    remedy = "give them a token, or mend ADMINS"
    return [warning("admins", f"{', '.join(nobody)}: nobody calls under this name", remedy)]


def _tokens(settings: Settings) -> list[Finding]:
    path = settings.auth_tokens_file
    if path is not None and path.stat().st_mode & _OTHERS:
        text = f"{path}: other users of this machine may read or write it"
        return [warning("tokens", text, f"chmod 600 {path}")]
    if settings.auth_tokens:
        names = ", ".join(token.name for token in settings.auth_tokens)
        return [ok("tokens", f"{len(settings.auth_tokens)}: {names}")]
    text = f"none: whoever reaches {settings.host}:{settings.port} may call"
    return [warning("tokens", text, "set AUTH_TOKENS or AUTH_TOKENS_FILE")]

"""Look at the OpenCode that a server with these settings would use, and leave nothing behind.

Attach: only reads. Managed: one that lives is joined, as a server would; else one is started for a
moment, with a temporary folder for its files, and it is gone before this returns.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opencode_mcp.app.check_providers import check_models
from opencode_mcp.app.findings import Finding, ok, problem, skipped, warning
from opencode_mcp.clock import Clock
from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.opencode.instance_file import read_record
from opencode_mcp.opencode.managed import LiveInstance, ManagedInstances, StartSettings
from opencode_mcp.opencode_errors import (
    OpencodeError,
    OpencodeStartError,
    OpencodeUnauthorizedError,
    OpencodeUnsupportedError,
)
from opencode_mcp.records import InstanceKind
from opencode_mcp.settings import child_environment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from opencode_mcp.settings import Settings

#: a sign of life is waited for so long, or as long as REQUEST_TIMEOUT_SECONDS if that is less; all
#: else takes as long as that allows, for OpenCode sets up a folder first, which takes seconds
_LOOK_S = 10.0
#: dispose and SIGTERM of an idle OpenCode take 1-3 s (measured)
_GONE_WITHIN_S = 15.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Joined:
    """A managed OpenCode in use, and how it came to that."""

    live: LiveInstance
    how: str


async def check_opencode(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:
    """Say whether OpenCode is there, takes our password, and has what the defaults need."""
    if settings.mode is InstanceKind.ATTACH and settings.server_url is not None:
        return await _attached(settings, settings.server_url, environ)
    return await _managed(settings, environ)


async def _attached(settings: Settings, url: str, environ: Mapping[str, str]) -> list[Finding]:
    secret = settings.server_password
    password = secret.get_secret_value() if secret else None
    async with _client(settings, url, settings.server_username, password) as client:
        try:
            version = (await client.health(timeout_s=_LOOK_S)).version
        except OpencodeUnauthorizedError:
            found = ok("OpenCode", f"{url} answers")
            return [found, _refused(settings), skipped("providers", "OpenCode was not asked")]
        except OpencodeError as error:
            return [_no_answer(url, error), skipped("providers", "OpenCode cannot be asked")]
        found = ok("OpenCode", f"{version} at {url}")
        return [
            found,
            await _password(settings, url),
            *await check_models(client, settings, environ),
        ]


def _no_answer(url: str, error: OpencodeError) -> Finding:
    if isinstance(error, OpencodeUnsupportedError):
        remedy = "attach to an OpenCode 1.x (tested with 1.18)"
    else:
        remedy = "start it (`opencode serve`), or mend SERVER_URL"
    return problem("OpenCode", f"{url}: {error}", remedy)


def _refused(settings: Settings) -> Finding:
    if settings.server_password is None:
        remedy = "set SERVER_PASSWORD or SERVER_PASSWORD_FILE to what OpenCode was started with"
        return problem("password", "OpenCode wants one, and none is set", remedy)
    text = f"OpenCode refuses the user name {settings.server_username!r} or its password"
    return problem("password", text, "set both to what OpenCode was started with")


async def _password(settings: Settings, url: str) -> Finding:
    """Say whether OpenCode asks for the password at all."""
    async with _client(settings, url, settings.server_username, None) as anybody:
        try:
            await anybody.health(timeout_s=_LOOK_S)
        except OpencodeUnauthorizedError:
            return ok("password", "accepted")
        except OpencodeError as error:
            return skipped("password", f"accepted; without it: {error}")
    remedy = "start it with OPENCODE_SERVER_PASSWORD: who reaches it can run commands there"
    return warning("password", "OpenCode asks for none", remedy)


async def _managed(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:
    start = StartSettings(
        binary=settings.opencode_bin,
        args=settings.serve_args,
        env=child_environment(environ, settings),
    )
    binary = start.resolved_binary()
    try:
        async with _running(settings, start) as joined:
            live = joined.live
            found = ok("OpenCode", f"{live.version}, {binary}: {joined.how}")
            async with _client(settings, live.url, live.username, live.password) as client:
                return [found, *await check_models(client, settings, environ)]
    except (OpencodeError, OSError) as error:
        remedy = "set OPENCODE_BIN to an OpenCode 1.x, or SERVER_URL to one that runs"
        if isinstance(error, OpencodeStartError) and binary is not None:
            remedy = f"run `{binary} serve` by hand to see why, or raise STARTUP_TIMEOUT_SECONDS"
        failed = problem("OpenCode", str(error), remedy)
        return [failed, skipped("providers", "OpenCode cannot be asked")]


@asynccontextmanager
async def _running(settings: Settings, start: StartSettings) -> AsyncIterator[Joined]:
    """Give the OpenCode that servers with these settings share, or one of our own for a moment."""
    folder = _shared_folder(settings)
    timeout_s = settings.startup_timeout_seconds
    if folder is not None:
        shared = ManagedInstances(folder, startup_timeout_s=timeout_s)
        try:
            live = await _live(shared, folder, start)
            if live is not None:
                yield Joined(live, "the one that servers use now")
                return
        finally:
            await shared.close()
    with tempfile.TemporaryDirectory(prefix="opencode-mcp-doctor-") as temporary:
        own = ManagedInstances(Path(temporary), startup_timeout_s=timeout_s)
        began = time.monotonic()
        live = await own.join_or_start(start)
        try:
            took = time.monotonic() - began
            yield Joined(live, f"started in {took:.1f} s, for this check only")
        finally:
            await own.close()
            await _gone(own, live)


async def _live(
    shared: ManagedInstances, folder: Path, start: StartSettings
) -> LiveInstance | None:
    """Join the instance with these settings; None: none lives, and none is started."""
    for instance_id in _with_settings(folder, start.key()):
        found = await shared.look(instance_id)
        if isinstance(found, LiveInstance):
            return found
    return None


def _with_settings(folder: Path, key: str) -> list[str]:
    records = map(read_record, sorted(folder.glob("*.json")))
    return [record.id for record in records if record and record.settings_key == key]


def _shared_folder(settings: Settings) -> Path | None:
    """Return where servers keep the files of their OpenCode; None: none of them had one yet."""
    folder = Path(f"{settings.database}.instances")
    return folder if folder.is_dir() else None


async def _gone(own: ManagedInstances, live: LiveInstance) -> None:
    """Wait until the OpenCode that we let go of is gone: its supervisor still uses the folder."""
    clock = Clock()
    deadline = clock.monotonic() + _GONE_WITHIN_S
    while not own.is_dead(live.id) and clock.monotonic() < deadline:
        await clock.sleep(_POLL_S)


def _client(settings: Settings, url: str, username: str, password: str | None) -> OpencodeClient:
    return OpencodeClient(
        url,
        username=username,
        password=password,
        request_timeout_s=settings.request_timeout_seconds,
    )

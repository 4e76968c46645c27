"""Who a bearer token belongs to: the operator's list, or a file that may change while we run."""

from __future__ import annotations

import hashlib
import hmac
import logging
from typing import TYPE_CHECKING

from mcp.server.auth.provider import AccessToken

from opencode_mcp.log_events import Event, tell
from opencode_mcp.records import InstanceKind
from opencode_mcp.settings_files import tokens_in
from opencode_mcp.settings_model import variable

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from opencode_mcp.settings import Settings
    from opencode_mcp.settings_web import NamedToken

log = logging.getLogger(__name__)


class Tokens:
    """Verifies bearer tokens (MCP's `TokenVerifier`). Holds digests, not tokens."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.auth_tokens_file
        self._only_one = settings.mode is InstanceKind.MANAGED and not settings.allow_shared_managed
        self._digests = _digests(settings.auth_tokens)
        # once more: it may have changed since the settings were read
        self._seen = self._stamp()
        if self._path is not None:
            self._take(self._path)

    @property
    def are_needed(self) -> bool:
        """Whether nobody may call without one."""
        return bool(self._digests)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose token this is; None: nobody's. Takes as long for each of them."""
        self._read_again()
        digest = _digest(token)
        owner = None
        for name, known in self._digests.items():
            if hmac.compare_digest(digest, known):
                owner = name  # no early end: its place in the list is nobody's business
        # the token itself is needed no more, and what is not kept cannot be shown
        return AccessToken(token="", client_id=owner, scopes=[]) if owner else None

    def _read_again(self) -> None:
        """Take the file's tokens if it has changed; a file that is wrong changes nothing."""
        stamp = self._stamp()
        if self._path is None or stamp == self._seen:
            return
        self._seen = stamp
        self._take(self._path)

    def _take(self, path: Path) -> None:
        try:
            tokens = tokens_in(path)
            self._check_count(tokens)
        except ValueError as error:
            tell(log, Event.TOKENS_WRONG, file=str(path), why=str(error))
            return
        self._digests = _digests(tokens)
        tell(log, Event.TOKENS_READ, file=str(path), count=len(tokens))

    def _check_count(self, tokens: Sequence[NamedToken]) -> None:
        if self._only_one and len(tokens) > 1:
            msg = f"several principals need {variable('allow_shared_managed')}"
            raise ValueError(msg)

    def _stamp(self) -> tuple[int, int, int] | None:
        if self._path is None:
            return None
        try:
            found: os.stat_result = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns


def _digests(tokens: Iterable[NamedToken]) -> dict[str, bytes]:
    return {each.name: _digest(each.token) for each in tokens}


def _digest(token: str) -> bytes:
    """Return what is compared: of one length for all, so that none can be told by its length."""
    return hashlib.sha256(token.encode()).digest()

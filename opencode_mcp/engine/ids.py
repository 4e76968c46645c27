"""Ids of our own making."""

from __future__ import annotations

import re
import secrets
import string
import time

from opencode_mcp.errors import InvalidArgumentError

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_SESSION_ID = re.compile(r"ses_[0-9A-Za-z]{1,60}")


def new_message_id() -> str:
    """Return a message id in OpenCode's own form: 12 hex digits of time, 14 random characters.

    Any id with the prefix works (facts 2.5); this form also sorts where OpenCode's own would.
    """
    stamp = (time.time_ns() // 1_000_000 * 0x1000) & 0xFFFFFFFFFFFF
    tail = "".join(secrets.choice(_BASE62) for _ in range(14))
    return f"msg_{stamp:012x}{tail}"


def new_token() -> str:
    """Return a name for a start that nobody else uses."""
    return secrets.token_hex(16)


def check_session_id(session_id: str) -> str:
    """Return an id that OpenCode gave us, if it is safe in a path (cases line 44).

    Raises InvalidArgumentError: another prefix would be a 500 (facts 1.8).
    """
    if not _SESSION_ID.fullmatch(session_id):
        msg = f"OpenCode made a session with an id this server cannot use: {session_id[:100]!r}"
        raise InvalidArgumentError(msg)
    return session_id

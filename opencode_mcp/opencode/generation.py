"""Which OpenCode this program can drive, and how another generation shows itself.

Standard library only: the supervisor imports it.
"""

from __future__ import annotations

import re

#: another generation has other routes, and answers ours with its web app (facts 8.2, case 27)
NOT_OURS = "this is not an OpenCode 1.x (tested with 1.18), which this server drives"

#: a development build has no number that could be compared, and is let in
VERSION_PATTERN = r"^([01]\.|[^0-9])"

_VERSION = re.compile(VERSION_PATTERN)


class UnsupportedServerError(Exception):
    """What listens is up, and is no OpenCode that we can drive; the text says how it shows."""


def checked_version(health: object) -> str | None:
    """Return the version in a decoded answer to `GET /global/health`; None: not healthy yet.

    Raises UnsupportedServerError.
    """
    if not isinstance(health, dict) or "healthy" not in health:
        message = "its answer on /global/health is another"
        raise UnsupportedServerError(message)
    if health["healthy"] is not True:
        return None
    version = str(health.get("version", ""))
    if not _VERSION.search(version):
        message = f"it says it is {version[:20]!r}"
        raise UnsupportedServerError(message)
    return version

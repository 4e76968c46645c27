"""Asking `opencode-info` as a caller does, and a list of any length for OpenCode to give."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.bridge import Answer, Bridge

PROVIDERS = r"^/config/providers$"
#: what OpenCode tells of a provider and nobody else must hear
MARK = "marked-secret"


def catalogue(count: int, *, provider: str = "big", **more: object) -> bytes:
    """Return a list of providers with so many models of one."""
    models = {f"m{n:04}": {"id": f"m{n:04}", **more} for n in range(count)}
    given = {"id": provider, "options": {"apiKey": MARK, "baseURL": f"https://u:{MARK}@x/"}}
    return json.dumps({"providers": [{**given, "models": models}], "default": {}}).encode()


async def info(bridge: Bridge, section: str, **more: object) -> Answer:
    """Ask, and expect an answer."""
    answer = await bridge.call("opencode-info", section=section, **more)
    assert not answer.is_error, answer.text
    assert (answer.structured["kind"], answer.status) == ("info", "ok")
    return answer


async def pages(bridge: Bridge, section: str, **more: object) -> list[Any]:
    """Read a whole list as a caller does: nextOffset and snapshotId, while there is more."""
    found: list[Any] = []
    said: dict[str, Any] = (await info(bridge, section, **more)).structured
    while True:
        assert len(found) == said["offset"], "the pages join"
        found += said[section]
        assert said["hasMore"] == ("nextOffset" in said) == (len(found) < said["total"])
        if not said["hasMore"]:
            return found
        pin = {"offset": said["nextOffset"], "snapshot_id": said["snapshotId"]}
        said = (await info(bridge, section, **more, **pin)).structured

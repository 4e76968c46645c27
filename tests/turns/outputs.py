"""Following the pages of `opencode-output`, as a caller does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.bridge import Answer, Bridge

    Pages = list[Answer]


def tool(name: str, **arguments: object) -> str:
    """Call a tool, in the model's script."""
    return "TOOL:" + json.dumps({"name": name, "args": arguments})


def echo(word: str) -> str:
    """Run a command that says a word."""
    return tool("bash", command=f"echo {word}", description="say it")


async def output(bridge: Bridge, session_id: str, turn: int = 1, **more: object) -> Answer:
    """Ask for one page."""
    return await bridge.call("opencode-output", sessionId=session_id, turn=turn, **more)


async def pages(bridge: Bridge, session_id: str, turn: int = 1, **more: object) -> Pages:
    """Follow the pages to the end, all of one snapshot."""
    found = [await output(bridge, session_id, turn, **more)]
    while found[-1].structured.get("hasMore"):
        last = found[-1].structured
        next_page = {"offset": last["nextOffset"], "snapshot_id": last["snapshotId"]}
        found.append(await output(bridge, session_id, turn, **more, **next_page))
    assert {page.error for page in found} <= {None} or len(found) == 1, found[-1].text
    return found


async def whole(bridge: Bridge, session_id: str, turn: int = 1, **more: object) -> str:
    """Return the text of all pages together."""
    found = await pages(bridge, session_id, turn, **more)
    assert found[0].error is None, found[0].text
    return "".join(page.text for page in found)

"""How a Codex caller goes on with a thread of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.bridge import Answer, Bridge


async def reply(bridge: Bridge, thread_id: str, prompt: str) -> Answer:
    return await bridge.call("codex-reply", threadId=thread_id, prompt=prompt)

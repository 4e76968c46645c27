"""Whether this process can do its work now: the database and OpenCode, looked at when asked."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import TYPE_CHECKING

from opencode_mcp.errors import OpencodeMcpError, StoreError
from opencode_mcp.log_events import Event, tell, tell_failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from opencode_mcp.engine.closing import Closing

log = logging.getLogger(__name__)

#: a probe waits so long for a look that is under way; Kubernetes gives it a second by default
_PATIENCE_S = 0.9
#: what was seen so recently is told again: probes are anybody's to send, and a look costs something
_FRESH_S = 1.0
#: what a look has seen that took longer than its probe is told to the next ones for so long
_USABLE_S = 30.0
OK = "ok"


class Readiness:
    """Looks once for all probes that come at the same time: they are anybody's to send.

    `database` and `opencode` raise what is wrong; `opencode` may take as long as a start.
    """

    def __init__(
        self,
        *,
        database: Callable[[], Awaitable[object]],
        opencode: Callable[[], Awaitable[object]],
        closing: Closing,
    ) -> None:
        self._looks = {"database": database, "opencode": opencode}
        self._closing = closing
        self._running: dict[str, asyncio.Task[None]] = {}
        #: what was seen last of each part, and when, in monotonic seconds
        self._seen: dict[str, tuple[str, float]] = {}

    async def look(self) -> dict[str, str]:
        """Return a word for each part: `ok`, or what it is not. Says nothing about why."""
        if self._closing.is_begun:
            return {"server": "stopping"}
        words = await asyncio.gather(*(self._look(part) for part in self._looks))
        return dict(zip(self._looks, words, strict=True))

    async def close(self) -> None:
        """Stop what is still looking."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _look(self, part: str) -> str:
        if (word := self._recent(part, _FRESH_S)) is not None:
            return word
        task = self._running.get(part)
        if task is None or task.done():
            task = asyncio.create_task(self._ask(part), name=f"look at {part}")
            self._running[part] = task
        await asyncio.wait({task}, timeout=_PATIENCE_S)
        return self._recent(part, _USABLE_S) or "no answer yet"

    def _recent(self, part: str, within_s: float) -> str | None:
        word, at = self._seen.get(part, ("", -math.inf))
        return word if time.monotonic() - at <= within_s else None

    async def _ask(self, part: str) -> None:
        word = await self._word(part)
        self._seen[part] = word, time.monotonic()

    async def _word(self, part: str) -> str:
        try:
            await self._looks[part]()
        except StoreError as error:  # without it OpenCode cannot be looked at, either
            word, why = "unusable" if part == "database" else "unknown", str(error)
        except OpencodeMcpError as error:
            word, why = error.name.lower().removeprefix("opencode_"), str(error)
        except Exception as error:  # noqa: BLE001 - a probe must be answered; a bug is no "ok"
            tell_failure(log, error, where=f"a look at {part}")
            return "failed"
        else:
            return OK
        tell(log, Event.NOT_READY, part=part, why=why)
        return word

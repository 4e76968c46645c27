"""How the tests repeat calls, and what the answers say of it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from tests.support.polling import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json
    from tests.support.bridge import Answer, Bridge
    from tests.support.bridges import Bridges

ID = "order-66"


class Row(NamedTuple):
    """What the database remembers of a request-id."""

    session_id: str | None
    turn: int | None
    call: str
    newest_call: str


async def ask(bridge: Bridge, prompt: str, cwd: Path, **more: object) -> Answer:
    """Call `opencode` with the request-id."""
    more = {"request_id": ID, **more}
    return await bridge.call("opencode", prompt=prompt, cwd=str(cwd), **more)


async def reply(bridge: Bridge, session_id: str, prompt: str, **more: object) -> Answer:
    """Call `opencode-reply` with the request-id."""
    more = {"request_id": ID, **more}
    return await bridge.call("opencode-reply", sessionId=session_id, prompt=prompt, **more)


def replayed(answer: Answer) -> bool:
    """Whether it says that an earlier call began its turn."""
    told: Json = answer.structured["request"]
    assert told["id"] == ID
    assert ("sent nothing" in answer.text) is told["replayed"]
    return bool(told["replayed"])


def turn_of(answer: Answer) -> tuple[str, object]:
    """Return which turn it is about."""
    return answer.session_id, answer.structured["turnId"]


def row_of(bridges: Bridges) -> Row | None:
    """Return what is remembered of the request-id; None: nothing."""
    with closing(sqlite3.connect(f"file:{bridges.database}?mode=ro", uri=True)) as file:
        found = file.execute(
            "SELECT session_id, turn, call, newest_call FROM requests WHERE request_id = ?", [ID]
        ).fetchone()
    return Row(*found) if found else None


async def change(bridges: Bridges, sql: str, *values: object) -> None:
    """Change the database as nobody of ours would; in a thread, so that a writer here can end."""

    def work() -> None:
        with closing(sqlite3.connect(bridges.database)) as file, file:
            file.execute(sql, values)

    await asyncio.to_thread(work)


async def claimed(bridges: Bridges, *, but: Row | None = None) -> Row:
    """Wait until a call has claimed the request-id, or joined it as its newest after `but`."""

    async def check() -> Row | None:
        found = row_of(bridges)
        return None if found == but else found

    found = await eventually(check, what="the request-id is claimed, or joined")
    assert found is not None
    return found

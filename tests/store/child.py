"""A process that uses the store as it is told: one JSON command a line, one JSON answer a line.

python -m tests.store.child [--unprivileged] [--no-shared-memory] DATABASE
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencode_mcp.errors import OpencodeMcpError, StaleSessionError
from opencode_mcp.records import EndAction
from opencode_mcp.store.store import Store
from tests.store.make import ROOMY, a_turn
from tests.support.disk import Disk, Memory

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_CAPABILITY_VERSION_3 = 0x20080522


def drop_privileges() -> None:
    """Make permission bits bind root, too: give up its capabilities (Linux)."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if libc.capset(header, nothing) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def open_once(path: Path, folder: str) -> object:
    """Open a fresh database in `folder`, write, close."""
    del path
    try:
        async with Store.open(Path(folder) / "tracking.db") as store:
            return (await store.attach_instance("http://127.0.0.1:4096")).id
    except OpencodeMcpError as error:
        return {"error": type(error).__name__, "text": str(error)}


async def begin_turns(
    path: Path, session_id: str, last: int, starters: int, pause_s: float = 0
) -> object:
    """Begin turns, read then write, until the session has `last`; tell which and how many lost.

    Waits until so many `starters` are ready for it, and pauses after each turn that it won: SQLite
    is not fair, and without a WAL the quicker one may keep the other out for a second.
    """
    won: list[int] = []
    lost = 0
    async with Store.open(path) as store:
        path.with_suffix(f".{os.getpid()}.starter").touch()
        while len([*path.parent.glob("*.starter")]) < starters:
            await asyncio.sleep(0.001)
        while True:
            session = await store.resolve(session_id)
            if session is None or session.turn_count >= last:
                return {"won": won, "lost": lost}
            number = session.turn_count + 1
            try:
                await store.begin_turn(session, a_turn(session_id, number), capacity=ROOMY)
                won.append(number)
                await asyncio.sleep(pause_s)
            except StaleSessionError:
                lost += 1


async def write_for_ever(path: Path, session_id: str) -> object:
    """Begin turns without end, and say each number once it is recorded."""
    async with Store.open(path) as store:
        session = await store.resolve(session_id)
        while session:
            turn = a_turn(session_id, session.turn_count + 1)
            session = await store.begin_turn(session, turn, capacity=ROOMY)
            say(session.turn_count)
    return None


async def begin_ends(path: Path, session_ids: list[str], action: str) -> object:
    """Ask for one end of each session; tell what each answered."""
    answers: list[str] = []
    async with Store.open(path) as store:
        for session_id in session_ids:
            try:
                session = await store.begin_end(session_id, EndAction(action), EndAction.DELETE)
                answers.append(session.ending.action if session.ending else "none")
            except OpencodeMcpError as error:
                answers.append(type(error).__name__)
    return answers


async def take_leases(path: Path, session_ids: list[str], holder: str) -> object:
    """Take the lease of each session; tell which were had."""
    async with Store.open(path) as store:
        return [
            session_id
            for session_id in session_ids
            if await store.take_lease(session_id, holder, None)
        ]


async def write_within_a_limit(path: Path, session_id: str, size: int) -> object:
    """Write more than the system allows the file to hold, then again without that limit."""
    alias = "x" * size
    answer: dict[str, object] = {}
    async with Store.open(path) as store:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, before[1]))
        try:
            await store.add_alias(alias, session_id)
        except OpencodeMcpError as error:
            answer = {"error": type(error).__name__, "text": str(error)}
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        answer["before"] = await store.resolve(alias) and "there"
        await store.add_alias(alias, session_id)
    return answer


COMMANDS: dict[str, Callable[..., Awaitable[object]]] = {
    command.__name__: command
    for command in (
        open_once,
        begin_turns,
        write_for_ever,
        begin_ends,
        take_leases,
        write_within_a_limit,
    )
}


async def main(path: Path) -> None:
    say("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, values = json.loads(line)
        arguments: dict[str, Any] = values
        say(await COMMANDS[name](path, **arguments))


if __name__ == "__main__":
    if "--unprivileged" in sys.argv:
        drop_privileges()
    with Disk(Memory.FAILS) if "--no-shared-memory" in sys.argv else nullcontext():
        asyncio.run(main(Path(sys.argv[-1])))

"""Processes of ours on one database file; what they do is in child.py."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ANSWER_S = 60.0


class Child:
    """A process of ours; see child.py."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def answer(self, within_s: float = ANSWER_S) -> object:
        assert self.process.stdout
        line = await asyncio.wait_for(self.process.stdout.readline(), within_s)
        assert line, "the child is gone"
        answer: object = json.loads(line)
        return answer

    def tell(self, command: str, **values: object) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps([command, values]).encode() + b"\n")

    async def ask(self, command: str, **values: object) -> object:
        self.tell(command, **values)
        return await self.answer()


@asynccontextmanager
async def child(path: Path, *options: str) -> AsyncIterator[Child]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.store.child", *options, str(path)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        started = Child(process)
        assert await started.answer() == "ready"
        yield started
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        assert process.stdin
        process.stdin.close()


@asynccontextmanager
async def children(path: Path, count: int, *options: str) -> AsyncIterator[list[Child]]:
    """Start `count` of them; all are ready and wait for a word."""
    if count == 0:
        yield []
        return
    async with child(path, *options) as one, children(path, count - 1, *options) as others:
        yield [one, *others]

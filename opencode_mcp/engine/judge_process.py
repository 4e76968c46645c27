"""Let a schema or an answer be worked on by a process of its own, for a bounded time."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import suppress
from typing import cast

from opencode_mcp.opencode.launcher import own_environment

_MODULE = "opencode_mcp.engine.judging"
#: of one order, in seconds, the wait for a place included: it takes 0.2 s, and many times that on a
#: busy machine
LIMIT_S = 10.0
#: processor time of one order, in seconds, after the libraries are loaded: a 1 MB answer of small
#: objects takes 1 on a free machine and has taken 3.3 on one that was busy
CPU_S = 6.0
#: at once, of all callers: the machine has other work
_AT_ONCE = 2


class NoJudgementError(Exception):
    """The process did not come to an end by itself.

    `lasting`: it would not the next time either, since it took more than it may, or broke down.
    """

    def __init__(self, *, lasting: bool) -> None:
        super().__init__()
        self.lasting = lasting


class JudgeProcess:
    """Runs one process for each order."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def run(self, schema: str, answer: str | None) -> dict[str, str]:
        """Return what `judging` reports of a schema, or of an answer. Raises NoJudgementError."""
        order = json.dumps({"schema": schema, "answer": answer, "cpu_s": CPU_S}).encode()
        try:
            async with asyncio.timeout(LIMIT_S), self._places:
                return await _run(order)
        except (TimeoutError, OSError) as error:  # a busy machine, or no room for a process
            raise NoJudgementError(lasting=False) from error


async def _run(order: bytes) -> dict[str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", _MODULE),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=own_environment(),
    )
    try:
        output, _ = await process.communicate(order)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode != 0:
        raise NoJudgementError(lasting=process.returncode != -signal.SIGKILL)
    return cast("dict[str, str]", json.loads(output))

"""Our server spoken to byte by byte, to see what a client library would hide."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from tests.support.process_bridge import COMMAND

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from opencode_mcp.cli.scripted_model import Json

_ANSWER_WITHIN_S = 30.0
_LINE_LIMIT = 1 << 20


class RawStdio:
    """An async context manager: the process, its lines, and nothing in between."""

    def __init__(self, env: Mapping[str, str], folder: Path) -> None:
        self._env = dict(env)
        self._folder = folder
        self.log = folder / "raw.log"
        #: every line that stdout ever gave, as it came
        self.lines: list[bytes] = []
        self._arrived = asyncio.Condition()

    async def __aenter__(self) -> Self:
        with self.log.open("ab") as errors:
            self.process = await asyncio.create_subprocess_exec(
                str(COMMAND),
                env=self._env,
                cwd=self._folder,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=_LINE_LIMIT,
            )
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        await self._reader

    async def initialize(self) -> Json:
        """Shake hands as today's clients do; return the server's part."""
        client = {"name": "raw", "version": "1"}
        answer = await self.request(
            0,
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client},
        )
        self.notify("notifications/initialized")
        return answer

    async def request(self, identity: int, method: str, params: Json | None = None) -> Json:
        """Send a request and wait for its answer."""
        self.send(identity, method, params)
        return await self.answer(identity)

    def send(self, identity: int, method: str, params: Json | None = None) -> None:
        """Send a request and do not wait."""
        self._write({"id": identity, "method": method, "params": params or {}})

    def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification."""
        self._write({"method": method, "params": params or {}})

    def call(self, identity: int, tool: str, **arguments: object) -> None:
        """Send a tool call and do not wait. In names `_` stands for `-`."""
        wire = {name.replace("_", "-"): value for name, value in arguments.items()}
        self.send(identity, "tools/call", {"name": tool, "arguments": wire})

    def send_line(self, line: bytes) -> None:
        """Send a line as it is."""
        self._stdin.write(line + b"\n")

    async def answer(self, identity: int) -> Json:
        """Wait for the answer to a request."""
        async with asyncio.timeout(_ANSWER_WITHIN_S), self._arrived:
            await self._arrived.wait_for(lambda: self.answers(identity))
        return self.answers(identity)[0]

    def answers(self, identity: int) -> list[Json]:
        """Return all messages that carry this request's id."""
        return [message for message in self.messages() if message.get("id") == identity]

    def messages(self) -> list[Json]:
        """Parse all that stdout gave; a line that is no JSON-RPC message fails the test."""
        parsed: list[Json] = [json.loads(line) for line in self.lines]
        assert all(message["jsonrpc"] == "2.0" for message in parsed)
        return parsed

    async def close_stdin(self) -> int:
        """Close stdin, as a client that leaves does; return the exit code."""
        self._stdin.close()
        return await self.exited(within_s=_ANSWER_WITHIN_S)

    async def exited(self, *, within_s: float) -> int:
        """Wait until the process is over; return its exit code."""
        async with asyncio.timeout(within_s):
            return await self.process.wait()

    @property
    def _stdin(self) -> asyncio.StreamWriter:
        assert self.process.stdin is not None
        return self.process.stdin

    def _write(self, message: Json) -> None:
        self.send_line(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            async with self._arrived:
                self.lines.append(line)
                self._arrived.notify_all()

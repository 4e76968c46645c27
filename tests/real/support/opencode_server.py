"""A real `opencode serve` that a test starts itself, to be attached to."""

from __future__ import annotations

import asyncio
import secrets
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import psutil

from opencode_mcp.opencode.processes import die_with_parent
from tests.real.support.processes import kill_home
from tests.real.support.sandbox import opencode_binary

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tests.real.support.sandbox import Sandbox

USERNAME = "opencode"
#: measured 1.3-1.7 s (facts 12.1); a loaded machine takes much longer
_READY_WITHIN_S = 60.0


def free_port() -> int:
    """Return a port that is free now. `--port 0` would mean 4096 first (facts 12.2)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class OpencodeServer:
    """An async context manager; leaving it kills the server and all that it started."""

    def __init__(self, sandbox: Sandbox, workdir: Path) -> None:
        self.sandbox = sandbox
        self.workdir = workdir
        self.password = secrets.token_urlsafe(16)
        self.port = free_port()
        self.log = sandbox.home / "opencode.log"
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            kill_home(self.sandbox.home)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.kill()
        kill_home(self.sandbox.home)

    async def start(self) -> None:
        """Start it (again, on the same port and data) and wait for its ready line."""
        env = {**self.sandbox.env(), "OPENCODE_SERVER_PASSWORD": self.password}
        with self.log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                str(opencode_binary()),
                *("serve", "--hostname", "127.0.0.1", "--port", str(self.port)),
                env=env,
                cwd=self.workdir,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                # the kernel kills it with us, even when this test process is killed
                preexec_fn=die_with_parent(),
            )
        async with asyncio.timeout(_READY_WITHIN_S):
            await self._ready(self._process)

    async def _ready(self, process: asyncio.subprocess.Process) -> None:
        if process.stdout is None:
            message = "started without a pipe"
            raise RuntimeError(message)
        said = b""
        async for line in process.stdout:
            said += line
            if b"listening on" in line:
                return
        message = f"opencode serve ended before it was ready: {said!r}; see {self.log}"
        raise RuntimeError(message)

    async def kill(self) -> None:
        """Kill the server itself, as a crash would; its shell children stay (facts 9.4)."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            process.kill()
        await process.wait()

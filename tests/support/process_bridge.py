"""Our server as a process of its own over stdio, as a client starts it."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from tests.support.bridge import Bridge, Era, shapes_of
from tests.support.polling import eventually

if TYPE_CHECKING:
    import signal
    from collections.abc import AsyncIterator, Mapping

    from fastmcp.client.elicitation import ElicitationHandler

COMMAND = Path(sys.executable).parent / "opencode-mcp"

#: A launcher that keeps its pid: forgets what the client's library adds of the developer's own
#: environment (it would make another managed OpenCode), tells us its pid, becomes the command.
_LAUNCH = 'unset LOGNAME SHELL TERM USER; echo $$ > "$1"; shift; exec "$@"'


@dataclass
class ProcessBridge(Bridge):
    """A running `opencode-mcp`; it can be sent signals, and be seen to die."""

    pid: int = field(kw_only=True)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        psutil.Process(self.pid).send_signal(number)

    async def dead(self, *, within_s: float = 10.0) -> None:
        """Wait until the process is gone."""

        async def check() -> bool:
            with suppress(psutil.NoSuchProcess):
                return psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE
            return True

        await eventually(check, within_s=within_s, what=f"process {self.pid} is gone")


@asynccontextmanager
async def run_bridge(
    env: Mapping[str, str],
    folder: Path,
    *,
    name: str,
    mode: Era = "legacy",
    person: ElicitationHandler | None = None,
) -> AsyncIterator[ProcessBridge]:
    """Start our server with this environment and nothing of ours; `folder` gets its log."""
    pid_file = folder / f"{name}.pid"
    log = folder / f"{name}.log"
    with log.open("a", encoding="utf-8") as errors:
        transport = StdioTransport(
            "/bin/sh",
            ["-c", _LAUNCH, "sh", str(pid_file), str(COMMAND)],
            env=dict(env),
            cwd=str(folder),
            keep_alive=False,
            log_file=errors,
        )
        client: Client[Any] = Client(
            transport, mode=mode, init_timeout=30, elicitation_handler=person
        )
        try:
            async with AsyncExitStack() as stack:
                # leaves as a client does: closes its stdin, then waits, then kills
                await stack.enter_async_context(client)
                shapes = await shapes_of(client)
                yield ProcessBridge(client, shapes, stack, pid=_read_pid(pid_file))
        except BaseException as error:
            error.add_note(f"{log}:\n{log.read_text(encoding='utf-8')[-3000:]}")
            raise
        finally:
            await _bury(pid_file)


async def _bury(pid_file: Path) -> None:
    """Make sure that no process of ours outlives its test."""
    with suppress(FileNotFoundError, psutil.NoSuchProcess):
        process = psutil.Process(_read_pid(pid_file))
        if str(COMMAND) in process.cmdline():
            process.kill()
            await asyncio.to_thread(process.wait, 5)


def _read_pid(pid_file: Path) -> int:
    return int(pid_file.read_text(encoding="utf-8"))

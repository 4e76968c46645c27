"""How a test types a command: in a thread of this process, as a process, or on a terminal."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import pty
import sqlite3
import struct
import subprocess
import termios
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from opencode_mcp.cli.commands import main
from tests.support.process_bridge import COMMAND

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LIMIT_S = 40
_CHUNK = 65_536


@dataclass(frozen=True)
class Said:
    """What a command wrote, and how it exited."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever it printed
        """The document on standard output, and nothing else may be there."""
        return json.loads(self.out)


class Command:
    """Types `opencode-mcp` with an environment. A setting's name has no prefix."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = dict(env)

    def with_settings(self, **settings: str) -> Command:
        """Return one that has these settings besides; "" takes one away."""
        env = self.env | {f"OPENCODE_MCP_{name}": value for name, value in settings.items()}
        return Command({name: value for name, value in env.items() if value})

    async def run(self, *arguments: str) -> Said:
        """Run the command in a thread: its event loop is not the test's."""
        return await asyncio.to_thread(self.run_now, *arguments)

    def run_now(self, *arguments: str) -> Said:
        """Run the command here."""
        missing: dict[str, str | None] = {
            name: None for name in os.environ if name.startswith("OPENCODE_MCP_")
        }
        with _logging_kept():
            result = CliRunner().invoke(main, arguments, env={**missing, **self.env})
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Said(result.exit_code, result.stdout, result.stderr)

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        """Start the command as a process of its own."""
        return await asyncio.create_subprocess_exec(
            str(COMMAND),
            *arguments,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    async def process(self, *arguments: str) -> Said:
        """Run the command as a process of its own, with pipes."""
        return await self.ended(await self.start(*arguments))

    @staticmethod
    async def ended(process: asyncio.subprocess.Process) -> Said:
        """Wait for a process that was started."""
        async with asyncio.timeout(_LIMIT_S):
            out, err = await process.communicate()
        assert process.returncode is not None
        return Said(process.returncode, out.decode(), err.decode())

    async def on_terminal(self, *arguments: str, columns: int) -> str:
        """Run the command on a terminal of so many columns; return what it shows."""
        return await asyncio.to_thread(self._on_terminal, arguments, columns)

    def _on_terminal(self, arguments: tuple[str, ...], columns: int) -> str:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        process = subprocess.Popen(
            [str(COMMAND), *arguments],
            env={**self.env, "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            close_fds=True,
        )
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # the terminal is gone with its last user
            while chunk := os.read(ours, _CHUNK):
                shown += chunk
        os.close(ours)
        assert process.wait(_LIMIT_S) == 0, shown
        return shown.decode()


def database(command: Command) -> Path:
    """Return where the command's tracking database is."""
    return Path(command.env["OPENCODE_MCP_DATABASE"])


async def rows(command: Command, sql: str) -> list[tuple[Any, ...]]:
    """Read or change the tracking database beside everybody."""
    return await asyncio.to_thread(_rows, command.env["OPENCODE_MCP_DATABASE"], sql)


def _rows(path: str, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as file, file:
        return file.execute(sql).fetchall()


@contextmanager
def _logging_kept() -> Iterator[None]:
    """Put logging back as it was: a command sets it up for its own process."""
    root, ours = logging.getLogger(), logging.getLogger("opencode_mcp")
    handlers, level, own_level = root.handlers[:], root.level, ours.level
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.handlers[:] = handlers
        root.setLevel(level)
        ours.setLevel(own_level)

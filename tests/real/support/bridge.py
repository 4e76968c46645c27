"""Our server as a subprocess over stdio, as a client starts it; each answer's shape is checked."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import jsonschema
import psutil
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from tests.real.support.polling import PATIENCE_S, eventually

if TYPE_CHECKING:
    import signal
    from collections.abc import AsyncIterator, Mapping

    from fastmcp.client.progress import ProgressHandler

    from opencode_mcp.cli.scripted_model import Json

#: pytest shows with a failed test what this one logged
log = logging.getLogger("bridge")
log.setLevel(logging.INFO)

COMMAND = Path(sys.executable).parent / "opencode-mcp"
#: contract §3: neither half of an answer is ever larger
_ANSWER_LIMIT = 45_000
_CALL_LIMIT_S = 60.0

#: A launcher that keeps its pid: tells it to us, then becomes the command.
_LAUNCH = 'echo $$ > "$1"; shift; exec "$@"'


class Answer(NamedTuple):
    """What a tool said: both halves, and whether it called itself an error."""

    structured: Json
    text: str
    is_error: bool

    @property
    def status(self) -> str:
        """The contract's `status`."""
        return str(self.structured["status"])

    @property
    def session_id(self) -> str:
        """The contract's `sessionId`."""
        return str(self.structured["sessionId"])

    @property
    def error(self) -> str | None:
        """The contract's `error.name`; None without an error."""
        found = self.structured.get("error")
        return None if found is None else str(found["name"])


@dataclass
class Bridge:
    """One running `opencode-mcp`, with a client connected to it."""

    client: Client[StdioTransport]
    pid: int
    #: what it wrote to stderr
    log: Path
    schemas: dict[str, Json] = field(default_factory=dict)

    async def call(self, tool: str, **arguments: object) -> Answer:
        """Call a tool and check the shape of what it says.

        In argument names `_` stands for `-`, and a trailing `_` is dropped.
        """
        wire = {name.rstrip("_").replace("_", "-"): value for name, value in arguments.items()}
        return await self.call_exactly(tool, wire)

    async def call_exactly(
        self, tool: str, arguments: Json, *, progress: ProgressHandler | None = None
    ) -> Answer:
        """Call a tool with exactly these arguments; for those that no Python name can spell."""
        result = await self.client.call_tool_mcp(
            tool, arguments, timeout=_CALL_LIMIT_S, progress_handler=progress
        )
        block = result.content[0]
        assert len(result.content) == 1, "one text block, no more"
        assert block.type == "text"
        structured = result.structured_content
        assert structured is not None, f"no structured content beside: {block.text}"
        log.info("%s %.200s -> %s", tool, arguments, block.text)
        jsonschema.validate(structured, self.schemas[tool])
        assert structured["content"] == block.text, "the two halves differ"
        assert len(json.dumps(structured)) <= _ANSWER_LIMIT
        answer = Answer(structured, block.text, bool(result.is_error))
        _check_identity(answer)
        return answer

    async def start(self, prompt: str, cwd: Path, **more: object) -> Answer:
        """Start a session that must be accepted."""
        answer = await self.call("opencode", prompt=prompt, cwd=str(cwd), **more)
        assert answer.structured["kind"] == "turn", answer.text
        return answer

    async def begin(self, prompt: str, cwd: Path, **more: object) -> str:
        """Start a session without waiting for its turn; return its id."""
        answer = await self.start(prompt, cwd, wait_seconds=0, **more)
        assert not answer.is_error, answer.text
        return answer.session_id

    async def status(self, session_id: str) -> Answer:
        """Ask for one session."""
        return await self.call("opencode-status", sessionId=session_id)

    async def end(self, session_id: str, **more: object) -> Answer:
        """End one session."""
        return await self.call("opencode-end", sessionId=session_id, **more)

    async def settled(self, session_id: str, *, within_s: float = PATIENCE_S) -> Answer:
        """Ask until the turn is over, and return that answer."""
        found: list[Answer] = []

        async def check() -> bool:
            found.append(await self.status(session_id))
            return found[-1].status not in {
                "running",
                "waiting_for_approval",
                "stopping",
                "unknown",
            }

        await eventually(check, within_s=within_s, what=f"the turn of {session_id} is over")
        return found[-1]

    async def listed(self) -> dict[str, str]:
        """Return the status of each tracked session, by id."""
        answer = await self.call("opencode-status")
        assert answer.structured["kind"] == "sessions", answer.text
        return {entry["sessionId"]: entry["status"] for entry in answer.structured["sessions"]}

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        psutil.Process(self.pid).send_signal(number)

    async def close(self) -> None:
        """Leave as a client does: close its stdin, then wait, then kill."""
        await self.client.close()  # type: ignore[no-untyped-call]

    async def dead(self, *, within_s: float = 10.0) -> None:
        """Wait until the process is gone."""

        async def check() -> bool:
            with suppress(psutil.NoSuchProcess):
                return psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE
            return True

        await eventually(check, within_s=within_s, what=f"process {self.pid} is gone")


def _check_identity(answer: Answer) -> None:
    """Contract §1 and §3: both names with one value, and the text names it as well."""
    if "sessionId" not in answer.structured:
        return
    session_id = answer.session_id
    assert answer.structured["threadId"] == session_id
    if re.fullmatch(r"ses_\w{1,90}", session_id):  # an id that is none may be shown cut
        assert session_id in answer.text, "a reader of the text alone cannot go on"


@asynccontextmanager
async def run_bridge(
    env: Mapping[str, str],
    folder: Path,
    *,
    name: str = "bridge",
    mode: Literal["legacy", "auto"] = "legacy",
) -> AsyncIterator[Bridge]:
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
        client: Client[Any] = Client(transport, mode=mode, init_timeout=30)
        try:
            async with client:
                tools = await client.list_tools()
                pid = _read_pid(pid_file)
                schemas = {tool.name: tool.output_schema or {} for tool in tools}
                yield Bridge(client, pid, log, schemas)
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

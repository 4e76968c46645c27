"""Our server, with a client connected to it; the shape of each answer is checked.

In this process, it costs a test milliseconds; as a process of its own (`process_bridge`), two or
three seconds of CPU. Both are built from the same environment, by the same code.
"""

from __future__ import annotations

import json
import logging
import re
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from fastmcp import Client
from jsonschema import Draft202012Validator

from opencode_mcp.app.runtime import open_runtime
from opencode_mcp.callers.server import build_server
from opencode_mcp.settings import load_settings
from tests.support.polling import PATIENCE_S, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from fastmcp.client.elicitation import ElicitationHandler
    from fastmcp.client.progress import ProgressHandler

    from opencode_mcp.cli.scripted_model import Json

#: pytest shows with a failed test what this one logged
log = logging.getLogger("bridge")
log.setLevel(logging.INFO)

#: `legacy` shakes hands, `auto` does so only with a server that wants it (protocol 2026-07-28)
Era: TypeAlias = Literal["legacy", "auto"]

#: contract §3: neither half of an answer is ever larger
_ANSWER_LIMIT = 45_000
#: more than any test lets a call wait, less than a test may take
_CALL_LIMIT_S = 110.0


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
    def thread_id(self) -> str:
        """Codex' `threadId`."""
        return str(self.structured["threadId"])

    @property
    def content(self) -> str:
        """The contract's `content`."""
        return str(self.structured["content"])

    @property
    def error(self) -> str | None:
        """The contract's `error.name`; None without an error."""
        found = self.structured.get("error")
        return None if found is None else str(found["name"])


@dataclass
class Bridge:
    """One running server of ours, with a client connected to it."""

    client: Client[Any]
    shapes: dict[str, Draft202012Validator]
    #: what `close` closes
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

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
        self.shapes[tool].validate(structured)
        if "kind" in structured:
            assert structured["content"] == block.text, "the two halves differ"
        else:
            _check_codex(structured, block.text)
        assert len(json.dumps(structured)) < _ANSWER_LIMIT
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

    async def is_ended(self, session_id: str) -> bool:
        """Whether the session is not tracked any more."""
        return (await self.status(session_id)).error == "SESSION_NOT_FOUND"

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

    async def close(self) -> None:
        """Let the client leave, and wait until the server is closed."""
        await self.stack.aclose()


def _check_codex(structured: Json, text: str) -> None:
    """Contract §2: `codex` and `codex-reply` answer this and nothing else, on errors too."""
    assert set(structured) == {"threadId", "content"}
    assert text.startswith(structured["content"])
    assert len(json.dumps(text, ensure_ascii=False)) <= _ANSWER_LIMIT
    thread_id = structured["threadId"]
    assert thread_id[:99] in text, "a reader of the text alone cannot go on"


def _check_identity(answer: Answer) -> None:
    """Contract §1 and §3: both names with one value, and the text names it as well."""
    if "sessionId" not in answer.structured:
        return
    session_id = answer.session_id
    assert answer.structured["threadId"] == session_id
    if answer.structured["kind"] == "output":  # its text is the page's, and nothing else
        return
    if re.fullmatch(r"ses_\w{1,90}", session_id):  # an id that is none may be shown cut
        assert session_id in answer.text, "a reader of the text alone cannot go on"


@asynccontextmanager
async def open_bridge(
    env: Mapping[str, str],
    folder: Path,
    *,
    mode: Era = "legacy",
    person: ElicitationHandler | None = None,
) -> AsyncIterator[Bridge]:
    """Open our server in this process with this environment; `folder` is its working folder.

    `person` answers what the client is asked; without one it can ask nobody.
    """
    settings = load_settings(env, cwd=folder)
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(open_runtime(settings, env))
        client: Client[Any] = Client(build_server(runtime), mode=mode, elicitation_handler=person)
        await stack.enter_async_context(client)
        yield Bridge(client, await shapes_of(client), stack)


async def shapes_of(client: Client[Any]) -> dict[str, Draft202012Validator]:
    """Return what each tool's answers must fit.

    Made once a bridge: to look at a schema anew for each answer costs more than all else in a test.
    """
    schemas = {tool.name: tool.output_schema or {} for tool in await client.list_tools()}
    return {name: Draft202012Validator(schema) for name, schema in schemas.items()}

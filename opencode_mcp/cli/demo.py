"""`opencode-mcp demo`: the main job for real, with each answer shown as it comes.

A real MCP client starts the installed `opencode-mcp` over stdio, as Claude Code or Codex would.
That starts OpenCode, runs two turns of one session, lists what is tracked, and ends the session.
Nothing is faked but, unless a model is named, the model.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from rich.console import Console

from opencode_mcp.callers.tool_table import NAMES
from opencode_mcp.cli.demo_screen import Screen
from opencode_mcp.cli.scripted_model import DEFAULT_MODEL, ScriptedModel, opencode_config
from opencode_mcp.clock import Clock
from opencode_mcp.opencode.instance_file import State, read_record

if TYPE_CHECKING:
    from collections.abc import Mapping

Json: TypeAlias = dict[str, Any]

#: a real model may think for minutes; the server's own wait ends before this
_CALL_LIMIT_S = 660.0
_WAIT_S = 600
#: our client's exit, then dispose and SIGTERM of OpenCode (measured: 1-3 s)
_STOPPED_WITHIN_S = 20.0
_LOG_TAIL_LINES = 20
#: what of the caller's own settings says how to run OpenCode, and not where to keep things
_KEPT_SETTINGS = ("OPENCODE_MCP_OPENCODE_BIN", "OPENCODE_MCP_STARTUP_TIMEOUT_SECONDS")


class DemoError(Exception):
    """A step did not come out as it should; the text says what was expected and what came."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """What the two turns ask for, and what each answer must contain; "" where anything will do."""

    first: str
    first_answer: str
    second: str
    second_answer: str


_LIST_FILES = json.dumps(
    {"name": "bash", "args": {"command": "ls -l", "description": "list the project's files"}}
)
SCRIPTED = Prompts(
    first=(
        "Look at the files of this project, then say what it is.\n"
        f"TOOL:{_LIST_FILES}\nTHEN\n"
        "SAY:The project has one file, README.md. Here are some words, slowly:\nSLOW:60"
    ),
    first_answer="The project has one file, README.md.",
    second="And what did I ask you first?\nSAY:You asked me to look at the files of this project.",
    second_answer="You asked me to look at the files of this project.",
)
REAL = Prompts(
    first="List the files of this project and say in one sentence what it is.",
    first_answer="",
    second="In one sentence: what did I ask you first?",
    second_answer="",
)


async def run_demo(*, model: str | None) -> int:
    """Run the demo with this model (`provider/model`; None: a scripted one); return 0 if all held.

    It has a database and a project of its own in a temporary folder. With a model of the user's,
    OpenCode runs in the user's home, so that the login there works.
    """
    console = Console()
    async with AsyncExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="opencode-mcp-demo-", ignore_cleanup_errors=True)
            )
        )
        scripted = None if model else await stack.enter_async_context(ScriptedModel())
        screen = Screen(console, scripted=scripted is not None, model=model or DEFAULT_MODEL)
        demo = Demo(folder, screen, model, scripted.url if scripted else None)
        try:
            screen.opening()
            await demo.run()
        except Exception as error:  # noqa: BLE001 - the command's outermost handler: shown, counted
            screen.failed(error, demo.log_tail())
            return 1
        screen.closing()
        return 0


class Demo:
    """One run of the demo."""

    def __init__(
        self, folder: Path, screen: Screen, model: str | None, scripted_url: str | None
    ) -> None:
        self._folder = folder
        self._screen = screen
        self._model = model
        self._scripted_url = scripted_url
        self._prompts = REAL if scripted_url is None else SCRIPTED
        self._log = folder / "opencode-mcp.log"
        self._database = folder / "tracking.db"
        self._project = folder / "project"

    async def run(self) -> None:
        """Do all steps. Raises DemoError, or what the client raises, at the first that fails."""
        self._project.mkdir()
        (self._project / "README.md").write_text("A project for a demo.\n", encoding="utf-8")
        command, arguments = server_command()
        transport = StdioTransport(
            command,
            arguments,
            env=self._environment(os.environ),
            cwd=str(self._project),
            keep_alive=False,
            log_file=self._log,
        )
        self._screen.command(command, arguments)
        async with Client(transport, mode="legacy") as client:
            await self._session(client)
        await self._stopped()

    def log_tail(self) -> str:
        """Return the last lines that the server wrote to its log."""
        if not self._log.exists():
            return ""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_LOG_TAIL_LINES:])

    async def _session(self, client: Client[StdioTransport]) -> None:
        tools = await client.list_tools()
        self._screen.tools(tools)
        expect("the tools", {tool.name for tool in tools}, set(NAMES))

        arguments: Json = {"prompt": self._prompts.first, "title": "Demo", "wait-seconds": _WAIT_S}
        if self._model:
            arguments["model"] = self._model
        first = await self._call(client, "opencode", arguments)
        _expect_turn(first, 1, self._prompts.first_answer)
        session_id = first["sessionId"]

        arguments = {
            "sessionId": session_id,
            "prompt": self._prompts.second,
            "wait-seconds": _WAIT_S,
        }
        second = await self._call(client, "opencode-reply", arguments)
        _expect_turn(second, 2, self._prompts.second_answer)
        expect("the session of the reply", second["sessionId"], session_id)

        listed = await self._call(client, "opencode-status", {})
        expect("the tracked sessions", _ids(listed), [session_id])
        ended = await self._call(client, "opencode-end", {"sessionId": session_id})
        expect("the end", (ended["status"], ended["done"]), ("ended", True))
        left = await self._call(client, "opencode-status", {})
        expect("the tracked sessions after the end", _ids(left), [])

    async def _call(self, client: Client[StdioTransport], tool: str, arguments: Json) -> Json:
        started = time.monotonic()
        with self._screen.calling(tool, arguments) as show:

            async def on_progress(
                progress: float, total: float | None, message: str | None
            ) -> None:
                del progress, total
                show(message or "")

            result = await client.call_tool_mcp(
                tool, arguments, timeout=_CALL_LIMIT_S, progress_handler=on_progress
            )
        answer = result.structured_content
        if answer is None:
            message = f"{tool} gave no structured answer: {result.content}"
            raise DemoError(message)
        self._screen.answer(tool, answer, time.monotonic() - started)
        if result.is_error:
            message = f"{tool} failed: {answer.get('content')}"
            raise DemoError(message)
        return dict(answer)

    async def _stopped(self) -> None:
        """Wait until the OpenCode that was started for us is gone, as promised."""
        clock = Clock()
        deadline = clock.monotonic() + _STOPPED_WITHIN_S
        while not self._all_gone():
            if clock.monotonic() > deadline:
                message = f"OpenCode still runs {_STOPPED_WITHIN_S:.0f} s after the client left"
                raise DemoError(message)
            await clock.sleep(0.1)
        self._screen.stopped()

    def _all_gone(self) -> bool:
        files = Path(f"{self._database}.instances").glob("*.json")
        records = [read_record(path) for path in files]
        return all(record is not None and record.state is State.GONE for record in records)

    def _environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the server's environment: the user's, without other settings of ours."""
        # OPENCODE_CONFIG and the like would win over the scripted model's own home
        ours = ("OPENCODE_",) if self._scripted_url else ("OPENCODE_MCP_", "OPENCODE_SERVER_")
        env = {name: value for name, value in own.items() if not name.startswith(ours)}
        env |= {name: own[name] for name in _KEPT_SETTINGS if name in own}
        config = self._folder / "no-settings.toml"
        config.touch()
        env |= {
            "OPENCODE_MCP_CONFIG": str(config),
            "OPENCODE_MCP_MODE": "managed",
            "OPENCODE_MCP_DATABASE": str(self._database),
            "OPENCODE_MCP_DEFAULT_CWD": str(self._project),
            "OPENCODE_MCP_ALLOWED_ROOTS": str(self._project),
        }
        if self._scripted_url is not None:
            env |= self._own_home(self._scripted_url)
        return env

    def _own_home(self, model_url: str) -> dict[str, str]:
        """Make a home in which OpenCode knows the scripted model and nothing of the user."""
        home = self._folder / "home"
        config = home / ".config" / "opencode"
        config.mkdir(parents=True)
        settings = json.dumps(opencode_config(model_url))
        (config / "opencode.json").write_text(settings, encoding="utf-8")
        return {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local" / "share"),
            "XDG_STATE_HOME": str(home / ".local" / "state"),
            "XDG_CACHE_HOME": str(home / ".cache"),
        }


def server_command() -> tuple[str, list[str]]:
    """Return how to start the installed server: the script beside this Python, else the module."""
    script = shutil.which("opencode-mcp", path=str(Path(sys.executable).parent))
    return (script, []) if script else (sys.executable, ["-m", "opencode_mcp"])


def expect(what: str, found: object, wanted: object) -> None:
    """Raise DemoError unless both are equal."""
    if found != wanted:
        message = f"{what}: expected {wanted!r}, got {found!r}"
        raise DemoError(message)


def _expect_turn(answer: Json, number: int, text: str) -> None:
    expect("the turn", (answer["status"], answer["turn"]), ("completed", number))
    if text not in answer["content"]:
        message = f"the answer of turn {number} does not contain {text!r}"
        raise DemoError(message)


def _ids(listed: Json) -> list[str]:
    return [entry["sessionId"] for entry in listed["sessions"]]

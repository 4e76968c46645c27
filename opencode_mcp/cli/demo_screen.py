"""What the demo shows: which tool is called with what, live progress, and the answer."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.markup import escape
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mcp_types import Tool
    from rich.console import Console

Json: TypeAlias = dict[str, Any]

_FIELDS = (
    ("status", "status"),
    ("sessionId", "session"),
    ("turn", "turn"),
    ("directory", "folder"),
    ("model", "model"),
    ("agent", "agent"),
    ("finish", "finish"),
    ("toolCallCount", "tool calls"),
    ("action", "action"),
    ("abortedRunningTurn", "aborted a running turn"),
    ("cleanup", "cleanup"),
    ("total", "tracked sessions"),
    ("opencodeVersion", "OpenCode"),
)
_BAD = ("failed", "timeout", "error", "ending")


class Screen:
    """Writes to one console; on anything but a terminal progress becomes plain lines."""

    def __init__(self, console: Console, *, scripted: bool, model: str) -> None:
        self._console = console
        self._scripted = scripted
        self._model = model
        self._step = 0

    def opening(self) -> None:
        """Say what is about to happen, and whose model answers."""
        if self._scripted:
            text = (
                "[b]The model in this demo is scripted[/b]: a small server on loopback plays it,"
                " no provider is asked and nothing is billed. Lines such as SAY: or TOOL: in the"
                " prompts tell it what to do. All else is real: the MCP client, this server,"
                " OpenCode, the shell command.\n"
                "With a model of your own, set up in your OpenCode:"
                " [b]make demo MODEL=provider/model[/b]"
            )
        else:
            text = (
                f"The model is [b]{escape(self._model)}[/b], through your own OpenCode set-up."
                " Two short turns will be billed by its provider."
            )
        self._console.print(Panel(text, title="opencode-mcp demo", border_style="cyan"))

    def command(self, command: str, arguments: Sequence[str]) -> None:
        """Say which server is started."""
        line = " ".join([command, *arguments])
        self._console.print(Text.assemble("An MCP client starts over stdio: ", (line, "bold")))

    def tools(self, tools: Sequence[Tool]) -> None:
        """Show what the server offers."""
        self._title("tools/list")
        table = Table(show_header=True, header_style="bold")
        table.add_column("tool", no_wrap=True)
        table.add_column("title", no_wrap=True)
        table.add_column("what it says of itself", overflow="fold")
        for tool in tools:
            first = (tool.description or "").strip().split(". ")[0]
            table.add_row(escape(tool.name), escape(tool.title or ""), escape(first))
        self._console.print(table)

    @contextmanager
    def calling(self, tool: str, arguments: Json) -> Iterator[Callable[[str], None]]:
        """Show a call while it runs; gives a function that takes the newest progress."""
        self._title(tool)
        given = Table.grid(padding=(0, 2))
        for name, value in arguments.items():
            given.add_row(Text(name, style="bold"), Text(str(value), style="dim"))
        self._console.print(given)
        if not self._console.is_terminal:
            yield lambda message: self._console.print(f"  … {escape(message)}")
            return
        with self._console.status("calling…", spinner="dots") as status:
            yield lambda message: status.update(escape(message))

    def answer(self, tool: str, answer: Json, took_s: float) -> None:
        """Show a tool's answer."""
        bad = answer.get("status") in _BAD
        facts = Table.grid(padding=(0, 2))
        for field, label in _FIELDS:
            value = answer.get(field)
            if value not in {None, ""}:
                facts.add_row(Text(label, style="bold"), Text(str(value)))
        title = f"answer of {tool} after {took_s:.1f} s"
        style = "red" if bad else "green"
        self._console.print(Panel(facts, title=title, title_align="left", border_style=style))
        if answer.get("kind") == "sessions":
            self._sessions(answer)
        else:
            self._console.print(Panel(Text(str(answer.get("content", ""))), border_style="dim"))

    def stopped(self) -> None:
        """Say that what was started is gone."""
        self._console.print("\nThe client left, and the OpenCode that served it was stopped.")

    def closing(self) -> None:
        """Say that all held."""
        text = "Every step came out as expected."
        if self._scripted:
            text += " The model was scripted; `make demo MODEL=provider/model` uses a real one."
        self._console.print(Panel(text, title="done", border_style="green"))

    def failed(self, error: BaseException, log_tail: str) -> None:
        """Show what went wrong, and the end of the server's log."""
        text = Text(f"{type(error).__name__}: {error}")
        self._console.print(Panel(text, title="the demo failed", border_style="red"))
        if log_tail:
            self._console.print(Panel(Text(log_tail), title="the server's last log lines"))

    def _title(self, name: str) -> None:
        self._step += 1
        self._console.print()
        self._console.print(Rule(f"{self._step}. {escape(name)}", align="left"))

    def _sessions(self, answer: Json) -> None:
        table = Table(show_header=True, header_style="bold")
        for heading in ("session", "status", "turns", "title", "updated"):
            table.add_column(heading, no_wrap=heading == "session")
        for entry in answer.get("sessions", ()):
            names = ("sessionId", "status", "turns", "title", "updatedAt")
            table.add_row(*(escape(str(entry.get(name, ""))) for name in names))
        self._console.print(table if table.row_count else "  no session is tracked")

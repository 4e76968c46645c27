"""One call of a tool: its part from pending to its end, and the leave it needs (facts 3.6, 5)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.twin.asks import RejectedError
from tests.twin.rules import is_off, relevant, rules_of, verdict
from tests.twin.shapes import Json, compact, now_ms
from tests.twin.tools import PERMISSION_OF, TOOLS, ToolError

if TYPE_CHECKING:
    from tests.twin.model import Call
    from tests.twin.turn import Run
    from tests.twin.writing import Answer

_ABORTED = "Tool execution aborted"
_USER_ABORTED = "\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>"


class ToolCall:
    """A call that runs beside the model's stream until it is over."""

    def __init__(self, run: Run, answer: Answer, call: Call) -> None:
        self.run = run
        self.args = call.args
        #: what a shell command has printed so far
        self.output = ""
        #: a shell command that has begun ends on an abort with what it printed (facts 4.2)
        self.has_shell = False
        #: a command that ignores signals: its call ends as an error (facts 4.2)
        self.is_stubborn = False
        self._answer = answer
        self._started: int | None = None
        self._tool = call.tool
        pending = {"status": "pending", "input": {}, "raw": ""}
        self._part = answer.put(
            {"type": "tool", "tool": call.tool, "callID": call.call_id, "state": pending}
        )
        self.task = asyncio.create_task(self._main())

    @property
    def is_slow_to_stop(self) -> bool:
        """Whether an abort has to wait for it (facts 4.2, 4.3)."""
        return not self._is_over and (not self.has_shell or self.is_stubborn)

    @property
    def place(self) -> Json:
        """Where it stands, as asks name it."""
        return {"messageID": self._part["messageID"], "callID": self._part["callID"]}

    def start(self, **shown: object) -> None:
        """Say that it runs, or what it has to show meanwhile."""
        self._started = self._started or now_ms()
        time = {"start": self._started}
        self._state({**shown, "status": "running", "input": self.args, "time": time})

    async def ask(self, permission: str, patterns: list[str], always: list[str], **of: str) -> None:
        """Go on only with leave; raises RejectedError, or ToolError where a rule denies it."""
        session, asks = self.run.session, self.run.runs.asks
        rules = [*rules_of(session), *asks.allowed(self.run.directory)]
        verdicts = {verdict(rules, permission, pattern) for pattern in patterns}
        if "deny" in verdicts:
            shown = compact(relevant(rules, permission))
            text = (
                "The user has specified a rule which prevents you from using this specific tool"
                f" call. Here are some of the relevant rules {shown}"
            )
            raise ToolError(text)
        if "ask" in verdicts:
            said = {"permission": permission, "patterns": patterns, "metadata": of}
            entry = {"sessionID": session["id"], **said, "always": always, "tool": self.place}
            ask = asks.open("permission", self.run.directory, **entry)
            self.start()
            await ask.answered

    def kill(self) -> None:
        """Stop it without a trace."""
        self.task.cancel()

    def stop(self) -> None:
        """Leave the trace of an abort, if it was not over."""
        if self._is_over:
            return
        if self.has_shell and not self.is_stubborn:
            output = (self.output or "(no output)") + _USER_ABORTED
            shell = {"output": self.output, "exit": None, "truncated": False}
            self._end(output, str(self.args["command"]), shell)
        else:
            self._fail(_ABORTED, metadata={"interrupted": True})

    @property
    def _is_over(self) -> bool:
        return self._part["state"]["status"] in {"completed", "error"}

    async def _main(self) -> None:
        rules = rules_of(self.run.session)
        if self._tool not in TOOLS or is_off(rules, PERMISSION_OF.get(self._tool, self._tool)):
            self._refuse()
            return
        try:
            output, title, metadata = await TOOLS[self._tool](self)
        except RejectedError as error:
            if error.ends_turn:
                self.run.rejection = str(error)
            self._fail(str(error))
        except ToolError as error:
            self._fail(str(error))
        else:
            self._end(output, title, metadata)

    def _refuse(self) -> None:
        """Answer a call of what is not offered: a tool of its own, which succeeds."""
        text = f"Model tried to call unavailable tool '{self._tool}'."
        self.args = {"tool": self._tool, "error": text}
        self._part = {**self._part, "tool": "invalid"}
        self.start()
        said = f"The arguments provided to the tool are invalid: {text}"
        self._end(said, "Invalid Tool", {"truncated": False})

    def _end(self, output: str, title: str, metadata: Json) -> None:
        self._state(
            {
                "status": "completed",
                "input": self.args,
                "output": output,
                "title": title,
                "metadata": metadata,
                "time": {"start": self._started or now_ms(), "end": now_ms()},
            }
        )

    def _fail(self, text: str, **more: object) -> None:
        time = {"start": self._started or now_ms(), "end": now_ms()}
        said = {"status": "error", "input": self.args, "error": text}
        self._state({**said, **more, "time": time})

    def _state(self, state: Json) -> None:
        self._part = self._answer.put({**self._part, "state": state})

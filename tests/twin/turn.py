"""One session's running loop: step after step, until nothing is left to answer (facts 3.5-3.8)."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from enum import Enum, auto
from typing import TYPE_CHECKING

from tests.twin.changes import Changes
from tests.twin.model import Begin, Call, Finish, MalformedError, ProviderError, Text
from tests.twin.shapes import ABORTED, Json, error, now_ms
from tests.twin.tool_call import ToolCall
from tests.twin.world import RowGoneError
from tests.twin.writing import Answer

if TYPE_CHECKING:
    from opencode_mcp.cli.scripted_model import ModelRequest
    from tests.twin.runs import Runs

_RETRIED = frozenset({429, 500, 502, 503, 504})
#: an answer with one of these is not the last one of its turn
_UNFINISHED = frozenset({None, "tool-calls", "unknown"})
_BLOCKED = error("ContentFilterError", "The response was blocked by the provider's content filter")
_ROW_GONE = error("UnknownError", 'Failed query: insert into "part"')


class _Next(Enum):
    STEP = auto()
    IDLE = auto()
    #: all that is to be said was said
    NOTHING = auto()


class Run:
    """The loop of one session. Prompts that come meanwhile join it (facts 2.8)."""

    def __init__(self, runs: Runs, session: Json) -> None:
        self.session = session
        self.session_id: str = session["id"]
        self.directory: str = session["directory"]
        self.runs = runs
        #: as `GET /session/status` shows it; None: not listed
        self.status: Json | None = None
        #: subagents at work for it (facts 7.2)
        self.children: list[str] = []
        #: the text of a rejection that ends the turn (facts 5.3)
        self.rejection: str | None = None
        self.was_aborted = False
        self.is_stopping = False
        self.is_killed = False
        self.task: asyncio.Task[None]
        self.changes = Changes(self.directory)
        self._backs_off = False
        self._has_answered = False
        self._answer: Answer | None = None  # of the step that is under way
        self._calls: list[ToolCall] = []

    def start(self) -> None:
        """Begin."""
        self.task = asyncio.create_task(self._main())
        self.task.add_done_callback(self._over)

    def stop(self) -> None:
        """Abort; `task` is done when that is complete, which makes an abort synchronous."""
        if not self.is_stopping:
            self.is_stopping = True
            self.task.cancel()

    def kill(self) -> None:
        """End without a trace, as the process would (facts 9.2)."""
        self.is_killed = True
        self.task.cancel()
        for call in self._calls:
            call.kill()

    def _over(self, _task: asyncio.Task[None]) -> None:
        self.status = None
        if self.runs.running.get(self.session_id) is self:
            del self.runs.running[self.session_id]

    async def _main(self) -> None:
        try:
            await self._until_idle()
        except RowGoneError:
            self._tell_row_gone()
        except asyncio.CancelledError:
            if not self.is_killed:
                self.was_aborted = True
                await self._wind_up()

    async def _until_idle(self) -> None:
        await asyncio.sleep(self.runs.pace.starting_s)
        following = _Next.STEP
        user: Json | None = None
        while following is _Next.STEP:
            self.set_status({"type": "busy"})
            user = self._unanswered()
            if user is None:
                following = _Next.IDLE
                break
            following = await self._step(user)
            self._answer = None
            if following is not _Next.NOTHING and self.runs.compactor.is_due(self.session_id):
                self.runs.compactor.compact(self, auto=True)
                following = _Next.STEP
            await asyncio.sleep(self.runs.pace.step_s)
        if following is _Next.IDLE:
            self.set_status(None)
        newest = self._newest_user()
        if newest is not None and self._has_answered:
            self._tell_summary(newest)  # after idle: facts 3.5

    async def _step(self, user: Json) -> _Next:
        if not self.runs.knows(user["info"]["model"]):
            return self._no_model(user["info"]["model"])
        step = self._answers_to(user)
        self._answer = Answer(self.runs.world, self.session, user["info"])
        self._has_answered = True
        self._tell_summary(user)
        self.set_status({"type": "busy"})
        request_of = (user["info"]["model"]["modelID"], _text(user), step)
        attempt = 0
        while True:
            request = self.runs.model.request(self.session_id, *request_of)
            try:
                finish = await self._stream(request, self._answer)
            except ProviderError as fault:
                if fault.status is not None and fault.status not in _RETRIED:
                    return self._fail(_api_error(fault))
                attempt += 1
                await self._back_off(attempt, fault)
                self._answer.start_over()
                self.set_status({"type": "busy"})
            except MalformedError as fault:
                return self._fail(error("UnknownError", str(fault)))
            else:
                return self._finish(finish, self._answer)

    async def _stream(self, request: ModelRequest, answer: Answer) -> str:
        """Write down what the model says and start the tools it calls; the finish reason."""
        finish = "stop"
        self._calls = []
        async with aclosing(self.runs.model.answer(request)) as pieces:
            async for piece in pieces:
                match piece:
                    case Begin():
                        answer.begin()
                    case Text(delta):
                        answer.say(delta)
                    case Call():
                        self._calls.append(ToolCall(self, answer, piece))
                    case Finish(reason):
                        finish = reason
                        answer.end_text()
        for call in self._calls:
            await call.task
        return finish

    def _finish(self, finish: str, answer: Answer) -> _Next:
        if finish == "content-filter":
            answer.finish(finish, _BLOCKED)
            self.runs.tell_error(self.session_id, self.directory, _BLOCKED)
            return _Next.IDLE
        answer.finish(finish)
        if self.changes.of_step:
            answer.put(self.changes.patch())
        return _Next.STEP if self.rejection is None else _Next.IDLE

    def _fail(self, fault: Json) -> _Next:
        """End the turn with an error: two pairs of idles, as after an abort (facts 8.4)."""
        self.runs.tell_error(self.session_id, self.directory, fault)
        self.set_status(None)
        if self._answer is not None:
            self._answer.fail(fault)
        self.set_status(None)
        self._has_answered = False
        return _Next.NOTHING

    def _no_model(self, model: Json) -> _Next:
        """Report an unknown model: there is no assistant message (facts 2.4)."""
        text = f"Model not found: {model['providerID']}/{model['modelID']}."
        self.runs.tell_error(self.session_id, self.directory, error("UnknownError", text))
        self.set_status(None)
        stack = error("UnknownError", f"ProviderModelNotFoundError: {text}\n    at <anonymous>")
        self.runs.tell_error(self.session_id, self.directory, stack)
        return _Next.NOTHING

    async def _back_off(self, attempt: int, fault: ProviderError) -> None:
        pauses = self.runs.pace.retries_s
        pause_s = fault.retry_after_s or pauses[min(attempt, len(pauses)) - 1]
        said = {"attempt": attempt, "message": str(fault), "next": now_ms() + int(pause_s * 1000)}
        self.set_status({"type": "retry", **said})
        self._backs_off = True
        await asyncio.sleep(pause_s)
        self._backs_off = False

    async def _wind_up(self) -> None:
        """Leave the traces of an abort (facts 4.1-4.4), in the order of facts 3.8."""
        answer = self._answer
        try:
            if answer is None:
                self._begin_aborted()
                return
            if self._backs_off:  # leaves no trace (facts 4.4)
                answer.end_text()
                answer.complete()
                self.set_status(None)
                return
            for call in self._calls:
                call.kill()
            for child in self.children:
                await self.runs.abort(child)
            self.runs.tell_error(self.session_id, self.directory, ABORTED)
            self.set_status(None)
            if any(call.is_slow_to_stop for call in self._calls):
                await asyncio.sleep(self.runs.pace.tool_abort_s)
            for call in self._calls:
                call.stop()
            answer.end_text()
            answer.fail(ABORTED)
            self.set_status(None)
        except RowGoneError:
            self._tell_row_gone()

    def _begin_aborted(self) -> None:
        """Abort before the first step: an answer all the same, and one pair of idles."""
        user = self._unanswered()
        if user is not None:
            Answer(self.runs.world, self.session, user["info"]).fail(ABORTED)
        self.set_status(None)

    def _tell_row_gone(self) -> None:
        """End the run of a deleted session at its first write (facts 6.2)."""
        for call in self._calls:
            call.kill()
        self.runs.tell_error(self.session_id, self.directory, _ROW_GONE)
        self.set_status(None)
        self.set_status(None)
        self.runs.tell_error(self.session_id, self.directory, _ROW_GONE)

    def set_status(self, status: Json | None) -> None:
        """Change the status and say so; None is idle."""
        self.status = status
        if status is None:
            self.runs.tell_idle(self.session_id, self.directory)
        else:
            said = {"sessionID": self.session_id, "status": status}
            self.runs.bus.publish(self.directory, "session.status", **said)

    def _tell_summary(self, user: Json) -> None:
        """Say what changed so far, on the user message (facts 3.5)."""
        world = self.runs.world
        if self.session_id not in world.sessions:
            return
        world.touch(self.session, summary={"additions": 0, "deletions": 0, "files": 0})
        said: dict[str, object] = {"sessionID": self.session_id, "diff": []}
        self.runs.bus.publish(self.directory, "session.diff", **said)
        world.put_message({**user["info"], "summary": {"diffs": self.changes.diffs}})

    def _newest_user(self) -> Json | None:
        history = self.runs.world.messages(self.session_id)
        return next((m for m in reversed(history) if m["info"]["role"] == "user"), None)

    def _unanswered(self) -> Json | None:
        """Return the newest user message, unless a complete answer stands behind it."""
        user = self._newest_user()
        last = self.runs.world.messages(self.session_id)[-1:]
        is_answered = bool(last) and last[0]["info"].get("finish") not in _UNFINISHED
        return None if is_answered else user

    def _answers_to(self, user: Json) -> int:
        history = self.runs.world.messages(self.session_id)
        later = history[history.index(user) + 1 :]
        return sum(message["info"]["role"] == "assistant" for message in later)


def _text(message: Json) -> str:
    parts = message["parts"]
    return "\n".join(part.get("text", "") for part in parts if part["type"] == "text")


def _api_error(fault: ProviderError) -> Json:
    """Make the error of a provider's refusal; it repeats headers and body (facts 8.4)."""
    said = {"message": str(fault), "statusCode": fault.status, "isRetryable": False}
    body = '{"error": "scripted"}'
    return {
        "name": "APIError",
        "data": {**said, "responseHeaders": {"server": "twin"}, "responseBody": body},
    }

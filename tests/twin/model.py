"""The scripted model inside: the same words as `opencode_mcp.cli.scripted_model`, without HTTP.

It keeps the same records as the model's server, so a test can look at either in the same way.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from opencode_mcp.cli.scripted_model import ModelRequest, step_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from opencode_mcp.cli.scripted_model import Step
    from tests.twin.shapes import Json

#: what OpenCode offers a model; only that there are tools matters to the script
TOOLS = ("bash", "edit", "question", "read", "task", "webfetch", "write")
#: the script's finish reasons, as OpenCode stores them; any other is "unknown"
_FINISHES = {
    "stop": "stop",
    "tool_calls": "tool-calls",
    "length": "length",
    "content_filter": "content-filter",
}
_NOT_CONTENT = frozenset({"CUT", "FINISH", "STATUS"})
_NOT_CONNECTED = "Cannot connect to API: The socket connection was closed unexpectedly."
_RESET = "Connection reset by server"
_WORDS_PER_SECOND = 10.0


@dataclass(frozen=True, slots=True)
class Begin:
    """The provider accepted the request."""


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer."""

    delta: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool to be run."""

    call_id: str
    tool: str
    args: Json


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of an answer."""

    reason: str


Piece: TypeAlias = Begin | Text | Call | Finish


class ProviderError(Exception):
    """The provider answered with an HTTP status, or broke the connection (status None)."""

    def __init__(self, message: str, status: int | None, retry_after_s: float | None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


class MalformedError(Exception):
    """The provider's stream was not what it should be: never tried again (facts 8.5)."""


class Model:
    """Answers by script. `speed` multiplies the words per second of a `SLOW`.

    While `goes_on` is cleared, answers that were begun say nothing more and do not end: whatever
    is done meanwhile is done in the middle of a turn, however slow the machine is.
    """

    def __init__(self, speed: float) -> None:
        self.requests: list[ModelRequest] = []
        self.speed = speed
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self._refusals: Counter[tuple[str | None, str, int]] = Counter()

    @property
    def open_streams(self) -> list[ModelRequest]:
        """Requests that are being answered at this moment."""
        return [request for request in self.requests if request.outcome is None]

    def request(self, session_id: str, model: str, prompt: str, step: int) -> ModelRequest:
        """Note a request; `step` is how many answers to this prompt went before it."""
        made = ModelRequest(
            number=len(self.requests) + 1,
            session_id=session_id,
            model=model,
            prompt=prompt,
            step=step,
            tools=TOOLS,
            body={},
        )
        self.requests.append(made)
        return made

    async def answer(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Stream the answer; raises ProviderError and MalformedError."""
        step = step_of(request)
        self._refuse(request, step)
        try:
            async for piece in self._pieces(request, step):
                yield piece
        except (asyncio.CancelledError, GeneratorExit):
            request.outcome = request.outcome or "left"
            raise
        except (ProviderError, MalformedError):
            request.outcome = "cut"
            raise

    async def _pieces(self, request: ModelRequest, step: Step) -> AsyncGenerator[Piece, None]:
        words = [name for name, _ in step]
        if "CUT" in words and set(words) <= _NOT_CONTENT:
            raise ProviderError(_NOT_CONNECTED, None, None)  # OpenCode saw nothing of it: measured
        yield Begin()
        for piece in _at_once(request, step):
            yield piece
        for name, argument in step:
            match name:
                case "SLOW":
                    async for word in self._words(argument):
                        yield word
                case "BLANK":
                    yield Text(" \n\t \n")
                case "CUT":
                    yield Text("cut here ")
                    raise ProviderError(_RESET, None, None)
                case _:
                    await _get_stuck(name)
        await self.goes_on.wait()
        usual = "tool_calls" if "TOOL" in words else "stop"
        finish = dict(step).get("FINISH", usual).strip()
        request.outcome = "done"
        yield Finish(_FINISHES.get(finish, "unknown"))

    async def _words(self, argument: str) -> AsyncGenerator[Text, None]:
        count, _, rate = argument.partition(",")
        pause_s = 1 / (float(rate) if rate else _WORDS_PER_SECOND) / self.speed
        next_at = asyncio.get_running_loop().time()
        for number in range(int(count)):
            await self.goes_on.wait()
            yield Text(f"w{number} ")
            next_at += pause_s  # a late word does not make the next one late
            await asyncio.sleep(next_at - asyncio.get_running_loop().time())

    def _refuse(self, request: ModelRequest, step: Step) -> None:
        wanted = next((argument for name, argument in step if name == "STATUS"), None)
        if wanted is None:
            return
        code, times, retry_after = [*wanted.split(","), "", ""][:3]
        key = (request.session_id, request.prompt, request.step)
        self._refusals[key] += 1
        if times and self._refusals[key] > int(times):
            return
        request.outcome = f"status {code}"
        wait_s = float(retry_after) if retry_after else None
        message = f"scripted {code}"
        raise ProviderError(message, int(code), wait_s)


def _at_once(request: ModelRequest, step: Step) -> list[Piece]:
    """Return the text and the calls of a step: they come before all else."""
    texts = [argument.strip() for name, argument in step if name == "SAY"]
    calls = [json.loads(argument) for name, argument in step if name == "TOOL"]
    called: list[Piece] = [
        Call(f"call_{request.number}_{index}", call["name"], call["args"])
        for index, call in enumerate(calls)
    ]
    return [Text("\n".join(texts)), *called] if texts else called


async def _get_stuck(name: str) -> None:
    if name == "HANG":
        await asyncio.Event().wait()
    if name == "MALFORMED":
        text = "JSON parsing failed: Text: {this is not json."
        raise MalformedError(text)

"""A scripted model on loopback: OpenAI-compatible, no network, no cost, every trouble on demand.

It lets `opencode-mcp demo` run on a machine without a provider, and lets tests on a real OpenCode
choose what the model does. The newest user message is the script. A line that begins with one of
these words is a directive; all other lines are mere text:

    SAY:text                    answer with this text (several lines: several SAYs)
    SLOW:words[,per_second]     stream so many words, 10 a second unless told otherwise
    TOOL:{"name":…,"args":{…}}  call a tool; several TOOL lines are several calls in one answer
    FINISH:reason               end the answer with this finish reason (`length`, `content_filter`)
    EMPTY                       an answer without any text
    BLANK                       an answer of white space only
    HANG                        begin to answer, then say nothing for ever
    CUT                         two words, then the connection breaks
    MALFORMED                   a line that is not JSON in the middle of the stream
    STATUS:code[,times[,s]]     answer this HTTP status, always or so many times; s: Retry-After
    THEN                        what follows is for the request that brings the tools' results
    REPEAT                      this step answers every further request too

Without a directive it repeats the beginning of the prompt. Once all steps are used, it says that
the tools are done. Requests without tools (titles, summaries) get a short text at once.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

from aiohttp import web

PROVIDER = "scripted"
#: two models that behave alike, so that a choice between them can be seen in a request
MODELS = ("one", "two")
DEFAULT_MODEL = f"{PROVIDER}/{MODELS[0]}"

_WORDS_PER_SECOND = 10.0
_REPEATED_CHARS = 80
#: a prompt of some MB is legal (facts 8.6)
_MAX_BODY_BYTES = 256 * 1024 * 1024
#: directives that leave open what is said
_NOT_CONTENT = ("FINISH", "STATUS", "REPEAT")
_DIRECTIVE = re.compile(
    r"^\s*(SAY|SLOW|TOOL|FINISH|EMPTY|BLANK|HANG|CUT|MALFORMED|STATUS|THEN|REPEAT)(?::(.*))?\s*$"
)

Json: TypeAlias = dict[str, Any]
Step: TypeAlias = list[tuple[str, str]]


@dataclass(slots=True)
class ModelRequest:
    """One request that the model got."""

    number: int
    #: OpenCode's session, from its own header; None if it sent none
    session_id: str | None
    model: str
    #: the newest user message
    prompt: str
    #: which answer to that message this is: 0 before any tool result, then 1, 2, …
    step: int
    tools: tuple[str, ...]
    body: Json = field(repr=False)
    #: None while it is being answered; then `done`, `left` (the client went), `cut` or `status …`
    outcome: str | None = None


class ScriptedModel:
    """The model's server: an async context manager on a free port of 127.0.0.1."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[ModelRequest] = []
        self._refusals: Counter[tuple[str | None, str, int]] = Counter()
        self._runner: web.AppRunner | None = None

    @property
    def open_streams(self) -> list[ModelRequest]:
        """Requests that are being answered at this moment."""
        return [request for request in self.requests if request.outcome is None]

    @property
    def last_request(self) -> ModelRequest | None:
        """The newest request that had tools: a turn's own, not one for a title."""
        return next((request for request in reversed(self.requests) if request.tools), None)

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_post("/v1/chat/completions", self._complete)
        # handler_cancellation: a client that leaves ends its stream at once
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        request = _read_request(len(self.requests) + 1, dict(http.headers), await http.json())
        self.requests.append(request)
        try:
            return await self._answer(http, request)
        except (ConnectionError, asyncio.CancelledError):
            request.outcome = "left"
            raise
        finally:
            request.outcome = request.outcome or "failed"

    async def _answer(self, http: web.Request, request: ModelRequest) -> web.StreamResponse:
        step = step_of(request)
        refusal = self._refusal(request, step)
        if refusal is not None:
            request.outcome = f"status {refusal.status}"
            return refusal
        answer = _Answer(http, request)
        await answer.give(step)
        return answer.response

    def _refusal(self, request: ModelRequest, step: Step) -> web.Response | None:
        wanted = next((argument for name, argument in step if name == "STATUS"), None)
        if wanted is None:
            return None
        code, times, retry_after = [*wanted.split(","), "", ""][:3]
        key = (request.session_id, request.prompt, request.step)
        self._refusals[key] += 1
        if times and self._refusals[key] > int(times):
            return None
        error = {"message": f"scripted {code}", "type": "scripted", "code": code}
        headers = {"Retry-After": retry_after} if retry_after else {}
        return web.json_response({"error": error}, status=int(code), headers=headers)


class _Answer:
    """One streamed answer."""

    def __init__(self, http: web.Request, request: ModelRequest) -> None:
        self._http = http
        self._request = request
        self.response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})

    async def give(self, step: Step) -> None:
        """Do what the step says, in its order, and close the answer."""
        await self.response.prepare(self._http)
        await self._send({"role": "assistant", "content": ""})
        texts = [argument.strip() for name, argument in step if name == "SAY"]
        if texts:
            await self._send({"content": "\n".join(texts)})
        calls = [json.loads(argument) for name, argument in step if name == "TOOL"]
        finish = "tool_calls" if calls else "stop"
        await self._call(calls)
        for name, argument in step:
            match name:
                case "SLOW":
                    await self._words(argument)
                case "BLANK":
                    await self._send({"content": " \n\t \n"})
                case "HANG":
                    await asyncio.Event().wait()
                case "MALFORMED":
                    await self.response.write(b"data: {this is not json\n\n")
                case "CUT":
                    await self._cut()
                    return
                case "FINISH":
                    finish = argument.strip()
                case _:
                    pass  # SAY, TOOL and STATUS are done; the others say nothing
        await self._end(finish)

    async def _send(self, delta: Json, finish: str | None = None) -> None:
        await self._write([{"index": 0, "delta": delta, "finish_reason": finish}])

    async def _write(self, choices: list[Json], **more: object) -> None:
        chunk = {
            "id": f"chatcmpl-{self._request.number}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": self._request.model,
            "choices": choices,
            **more,
        }
        await self.response.write(f"data: {json.dumps(chunk)}\n\n".encode())

    async def _call(self, calls: list[Json]) -> None:
        for index, call in enumerate(calls):
            function = {"name": call["name"], "arguments": json.dumps(call["args"])}
            identity = f"call_{self._request.number}_{index}"
            item = {"index": index, "id": identity, "type": "function", "function": function}
            await self._send({"tool_calls": [item]})

    async def _words(self, argument: str) -> None:
        count, _, rate = argument.partition(",")
        pause_s = 1 / (float(rate) if rate else _WORDS_PER_SECOND)
        for number in range(int(count)):
            await self._send({"content": f"w{number} "})
            await asyncio.sleep(pause_s)

    async def _cut(self) -> None:
        await self._send({"content": "cut "})
        await self._send({"content": "here "})
        self._request.outcome = "cut"
        if self._http.transport is not None:
            self._http.transport.abort()

    async def _end(self, finish: str) -> None:
        await self._send({}, finish)
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        await self._write([], usage=usage)
        await self.response.write(b"data: [DONE]\n\n")
        self._request.outcome = "done"


def opencode_config(url: str) -> Json:
    """Return an `opencode.json` whose only provider is the scripted model at `url`."""
    model = {"tool_call": True, "limit": {"context": 10_000_000, "output": 8000}}
    return {
        "$schema": "https://opencode.ai/config.json",
        "model": DEFAULT_MODEL,
        "small_model": DEFAULT_MODEL,
        "provider": {
            PROVIDER: {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Scripted model",
                "options": {"baseURL": url, "apiKey": "none"},
                "models": {name: {"name": f"Scripted {name}", **model} for name in MODELS},
            }
        },
    }


def parse_script(text: str) -> list[Step]:
    """Return the directives of a prompt, a list a step; text without any gives one empty step."""
    steps: list[Step] = [[]]
    for line in text.splitlines():
        found = _DIRECTIVE.match(line)
        if found is None:
            continue
        name, argument = found[1], found[2] or ""
        if name == "THEN":
            steps.append([])
        else:
            steps[-1].append((name, argument))
    return steps


def step_of(request: ModelRequest) -> Step:
    """Return what this request is to be answered with."""
    if not request.tools:
        return [("SAY", "Scripted title")]
    steps = parse_script(request.prompt)
    last = len(steps) - 1
    if request.step > last and ("REPEAT", "") not in steps[last]:
        return [("SAY", "The tools are done.")]
    step = steps[min(request.step, last)]
    if all(name in _NOT_CONTENT for name, _ in step):
        start = " ".join(request.prompt.split())[:_REPEATED_CHARS]
        return [*step, ("SAY", f"You said: {start}")]
    return step


def _read_request(number: int, headers: dict[str, str], body: Json) -> ModelRequest:
    messages: list[Json] = body["messages"]
    users = [index for index, message in enumerate(messages) if message["role"] == "user"]
    newest = users[-1] if users else len(messages)
    lower = {name.lower(): value for name, value in headers.items()}
    return ModelRequest(
        number=number,
        session_id=lower.get("x-session-affinity") or lower.get("x-session-id"),
        model=str(body.get("model")),
        prompt=_text(messages[newest]) if users else "",
        step=sum(message["role"] == "assistant" for message in messages[newest:]),
        tools=tuple(tool["function"]["name"] for tool in body.get("tools") or ()),
        body=body,
    )


def _text(message: Json) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)

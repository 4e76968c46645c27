"""A model's API on loopback, for clients that ask one: Anthropic's Messages, OpenAI's Responses.

A test writes what the model does as a generator: it yields the calls that the model makes, gets
what the model is shown of each, and returns the model's last words.

    def script() -> Script:
        shown = yield Call("opencode", prompt="…")
        return f"it said {shown.json['content']}"
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from aiohttp import web

if TYPE_CHECKING:
    from opencode_mcp.cli.scripted_model import Json

#: a client's system prompt and tools are some hundred kB
_MAX_BODY_BYTES = 64 * 1024 * 1024


class Call:
    """The model calls one of our tools."""

    def __init__(self, tool: str, /, **arguments: object) -> None:
        self.tool = tool
        self.arguments = {name.replace("_", "-"): value for name, value in arguments.items()}


@dataclass(frozen=True)
class Shown:
    """What the client put before its model as the result of a call."""

    text: str
    #: None where the API has no word for it
    is_error: bool | None = None

    @property
    def json(self) -> Json:
        """The result as an object, where the client shows one; Codex puts two lines before it."""
        assert "{" in self.text, f"no object was shown, but: {self.text}"
        found: Json = json.loads(self.text[self.text.index("{") :])
        return found


Script: TypeAlias = Generator[Call, Shown, str]


@dataclass
class ApiRequest:
    """One request of the client."""

    path: str
    body: Json = field(repr=False)

    @property
    def tools(self) -> Json:
        """The tools that the model may call at once, by name as the client spells it."""
        found: Json = {}
        for tool in self.body.get("tools") or ():
            if tool.get("type") == "namespace":
                inner = tool["tools"]
                found |= {f"{tool['name']}/{each['name']}": each for each in inner}
            else:
                found[tool.get("name") or tool["type"]] = tool
        return found


class ScriptedApi:
    """The API's server: an async context manager on a free port of 127.0.0.1."""

    def __init__(self, script: Script) -> None:
        self.url = ""
        #: what the client asked in its conversation, not what it asks besides (titles and such)
        self.requests: list[ApiRequest] = []
        #: what the model was shown, in order
        self.shown: list[Shown] = []
        self._script = script
        self._answers: list[Call | str] = []
        self._error: Exception | None = None
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/responses", self._responses)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._script.close()
        if self._runner is not None:
            await self._runner.cleanup()

    def check(self) -> None:
        """Raise what went wrong in the script: the client was only told that its request is bad."""
        if self._error is not None:
            raise self._error

    async def _messages(self, http: web.Request) -> web.StreamResponse:
        request = ApiRequest(http.path, await http.json())
        if not request.tools:
            return await _stream(http, _anthropic_events("A title", 0))
        self.requests.append(request)
        blocks = [
            block
            for message in request.body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
        shown = [Shown(_text(block["content"]), bool(block.get("is_error"))) for block in blocks]
        return await self._answer(http, shown, _anthropic_events)

    async def _responses(self, http: web.Request) -> web.StreamResponse:
        request = ApiRequest(http.path, await http.json())
        self.requests.append(request)
        items = [item for item in request.body["input"] if item["type"] == "function_call_output"]
        shown = [Shown(_text(item["output"])) for item in items]
        return await self._answer(http, shown, _openai_events)

    async def _answer(
        self, http: web.Request, shown: list[Shown], events: Callable[[Call | str, int], list[Json]]
    ) -> web.StreamResponse:
        try:
            answer = self._next(shown)
        except Exception as error:  # noqa: BLE001 - whatever a test's script does: `check` raises it
            self._error = error
            # no client tries a bad request again
            return web.json_response({"error": {"message": "the script failed"}}, status=400)
        return await _stream(http, events(answer, len(shown)))

    def _next(self, shown: list[Shown]) -> Call | str:
        """Return the answer that comes after these results; a client may ask for one twice."""
        self.shown = shown
        while len(self._answers) <= len(shown):
            try:
                if self._answers:
                    self._answers.append(self._script.send(shown[len(self._answers) - 1]))
                else:
                    self._answers.append(next(self._script))
            except StopIteration as over:
                self._answers.append(str(over.value))
        return self._answers[len(shown)]


async def _stream(http: web.Request, events: list[Json]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(http)
    for event in events:
        await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    await asyncio.sleep(0)
    return response


def _text(content: Any) -> str:  # noqa: ANN401 - both APIs: a text, or a list of parts
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def _anthropic_events(answer: Call | str, number: int) -> list[Json]:
    if isinstance(answer, Call):
        name = f"mcp__opencode__{answer.tool}"
        block: Json = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
        reason = "tool_use"
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": answer}
        reason = "end_turn"
    message: Json = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    stop = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]


def _openai_events(answer: Call | str, number: int) -> list[Json]:
    if isinstance(answer, Call):
        item: Json = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": answer.tool.replace("-", "_"),
            "namespace": "mcp__opencode",
            "arguments": json.dumps(answer.arguments),
        }
    else:
        content = [{"type": "output_text", "text": answer, "annotations": []}]
        item = {"type": "message", "id": f"m_{number}", "role": "assistant", "content": content}
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    response = {"id": f"resp_{number}"}
    return [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response | {"usage": usage}},
    ]

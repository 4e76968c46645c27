"""The conformance suite's tools that ask the client for something first (protocol 2026-07-28)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastmcp import Context  # noqa: TC002 - FastMCP reads it
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)
from mcp_types.jsonrpc import MISSING_REQUIRED_CLIENT_CAPABILITY

if TYPE_CHECKING:
    from fastmcp import FastMCP

    from opencode_mcp.cli.scripted_model import Json

#: what `test_input_required_result_multi_round` wants to know, in this order
_ROUNDS = (
    ("step1", "Step 1: What is your name?", "name"),
    ("step2", "Step 2: What is your favorite color?", "color"),
)


def offer_asks(server: FastMCP) -> None:
    """Add these tools, and one prompt, to a server."""
    _offer_single_asks(server)
    _offer_states(server)
    _offer_rounds(server)
    _offer_capabilities(server)

    @server.prompt(name="test_input_required_result_prompt", description="Asks first")
    def prompt(context: Context) -> Any:  # noqa: ANN401 - a text, or what is asked for
        asked: dict[str, InputRequest] = {
            "user_context": _form("What context should the prompt use?", "context")
        }
        return "Here it is." if _answered(context, *asked) else _ask(asked)


def _offer_single_asks(server: FastMCP) -> None:
    asks: dict[str, tuple[str, InputRequest]] = {
        "elicitation": ("user_name", _form("What is your name?", "name")),
        "sampling": ("capital_question", _sample("What is the capital of France?", 100)),
        "list_roots": ("client_roots", ListRootsRequest()),
    }
    for name, (key, request) in asks.items():
        tool = _asks_once({key: request})
        server.tool(tool, name=f"test_input_required_result_{name}", description="Asks first")
    name, request = asks["elicitation"]
    tool = _asks_once({name: request})
    server.tool(tool, name="test_streaming_elicitation", description="Asks first")


def _asks_once(asked: dict[str, InputRequest]) -> Any:  # noqa: ANN401 - a function for FastMCP
    async def ask(context: Context) -> Any:  # noqa: ANN401 - a text, or what is asked for
        if not _answered(context, *asked):
            return _ask(asked)
        answers = [response.model_dump(mode="json") for response in _answers(context).values()]
        return f"Hello: {answers}"

    return ask


def _offer_states(server: FastMCP) -> None:
    confirm: dict[str, InputRequest] = {"confirm": _form("Please confirm", "ok")}
    several: dict[str, InputRequest] = {
        "user_name": _form("What is your name?", "name"),
        "greeting": _sample("Generate a greeting", 50),
        "client_roots": ListRootsRequest(),
    }
    for name, asked in (
        ("request_state", confirm),
        ("tampered_state", confirm),
        ("multiple_inputs", several),
    ):
        tool = _asks_with_state(asked)
        server.tool(tool, name=f"test_input_required_result_{name}", description="Asks first")


def _asks_with_state(asked: dict[str, InputRequest]) -> Any:  # noqa: ANN401 - a function for FastMCP
    async def ask(context: Context) -> Any:  # noqa: ANN401 - a text, or what is asked for
        if not _answered(context, *asked):
            return _ask(asked, state="the state")
        return "state-ok" if context.request_state == "the state" else "another state"

    return ask


def _offer_rounds(server: FastMCP) -> None:
    @server.tool(name="test_input_required_result_multi_round", description="Asks twice")
    async def rounds(context: Context) -> Any:  # noqa: ANN401 - a text, or what is asked for
        done = int(context.request_state or 0)
        if done and _answered(context, _ROUNDS[done - 1][0]) and done == len(_ROUNDS):
            return "all is known"
        key, question, field = _ROUNDS[done]
        return _ask({key: _form(question, field)}, state=str(done + 1))


def _offer_capabilities(server: FastMCP) -> None:
    @server.tool(name="test_input_required_result_capabilities", description="Asks what it may")
    async def asks(context: Context) -> Any:  # noqa: ANN401 - a text, or what is asked for
        declared = context.session.client_capabilities
        may: dict[str, InputRequest] = {}
        if declared is not None and declared.elicitation is not None:
            may["user_name"] = _form("What is your name?", "name")
        if declared is not None and declared.sampling is not None:
            may["greeting"] = _sample("Generate a greeting", 50)
        return _ask(may)

    @server.tool(name="test_missing_capability", description="Needs sampling")
    async def needs_sampling() -> str:
        data: Json = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "needs sampling", data)


def _form(message: str, field: str) -> ElicitRequest:
    kind = "boolean" if field == "ok" else "string"
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sample(question: str, max_tokens: int) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=question))
    params = CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    return CreateMessageRequest(params=params)


def _ask(asked: dict[str, InputRequest], state: str | None = None) -> InputRequiredResult:
    return InputRequiredResult(input_requests=asked, request_state=state)


def _answers(context: Context) -> dict[str, Any]:
    return dict(context.input_responses or {})


def _answered(context: Context, *keys: str) -> bool:
    return all(key in _answers(context) for key in keys)

"""`codex` and `codex-reply` as a client sees them: what the Codex MCP server listed, typed out.

Source: `tools/list` of `codex mcp-server` 0.153.4, the last version that had it.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import Client

from opencode_mcp.app.runtime import open_runtime
from opencode_mcp.callers.codex_answers import to_codex_result
from opencode_mcp.callers.server import build_server
from opencode_mcp.callers.tool_table import CODEX_NAMES, NAMES
from opencode_mcp.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from fastmcp.client.client import CallToolResult
    from mcp_types import Tool

    from opencode_mcp.callers.wire import Result

_TEXT = {"type": "string"}
_CODEX = {
    "type": "object",
    "additionalProperties": False,
    "required": ["prompt"],
    "properties": {
        "approval-policy": {"type": "string", "enum": ["on-request", "never"]},
        "base-instructions": _TEXT,
        "compact-prompt": _TEXT,
        "config": {"type": "object", "additionalProperties": True},
        "cwd": _TEXT,
        "developer-instructions": _TEXT,
        "model": _TEXT,
        "prompt": _TEXT,
        "sandbox": {
            "type": "string",
            "enum": ["read-only", "workspace-write", "danger-full-access"],
        },
    },
}
_REPLY = {
    "type": "object",
    # not in Codex's, which took unknown arguments and ignored them: ours are strict
    "additionalProperties": False,
    "required": ["prompt"],
    "properties": {"conversationId": _TEXT, "prompt": _TEXT, "threadId": _TEXT},
}
_OUTPUT = {
    "type": "object",
    "properties": {"threadId": _TEXT, "content": _TEXT},
    "required": ["threadId", "content"],
}


@asynccontextmanager
async def _opened(folder: Path, mode: str, **more: str) -> AsyncIterator[Client[Any]]:
    environ = {
        "HOME": str(folder / "home"),
        "OPENCODE_MCP_DATABASE": str(folder / "tracking.db"),
        "OPENCODE_MCP_DEFAULT_CWD": str(folder),
        "OPENCODE_MCP_OPENCODE_BIN": str(folder / "there-is-none"),
        **more,
    }
    settings = load_settings(environ, cwd=folder)
    async with (
        open_runtime(settings, environ) as runtime,
        Client(build_server(runtime), mode=mode) as connected,
    ):
        yield connected


@pytest.fixture(params=["legacy", "auto"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client[Any]]:
    """Give a client, of either protocol era, on a server with CODEX_TOOLS and without OpenCode."""
    async with _opened(tmp_path, request.param, OPENCODE_MCP_CODEX_TOOLS="true") as connected:
        yield connected


@pytest.fixture
async def plain(tmp_path: Path) -> AsyncIterator[Client[Any]]:
    """Give a client on a server without CODEX_TOOLS."""
    async with _opened(tmp_path, "legacy") as connected:
        yield connected


async def _tools(client: Client[Any]) -> dict[str, Tool]:
    return {tool.name: tool for tool in await client.list_tools()}


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop the descriptions: they are ours."""
    properties = {
        name: {key: value for key, value in prop.items() if key != "description"}
        for name, prop in schema["properties"].items()
    }
    return {**schema, "properties": properties}


async def test_they_are_listed_beside_the_others_with_codex_schemas(client: Client[Any]) -> None:
    tools = await _tools(client)
    assert tuple(tools) == (*NAMES, *CODEX_NAMES)
    assert _bare(tools["codex"].input_schema) == _CODEX
    assert _bare(tools["codex-reply"].input_schema) == _REPLY
    assert [tools[name].output_schema for name in CODEX_NAMES] == [_OUTPUT, _OUTPUT]
    assert [tools[name].title for name in CODEX_NAMES] == ["Codex", "Codex Reply"]


async def test_they_are_absent_unless_the_operator_wants_them(plain: Client[Any]) -> None:
    assert tuple(await _tools(plain)) == NAMES
    handshake = plain.initialize_result
    assert handshake is not None
    assert "codex" not in (handshake.instructions or "")
    for name in CODEX_NAMES:
        answer = await plain.call_tool(name, {"prompt": "x"}, raise_on_error=False)
        assert answer.is_error
        assert answer.structured_content is not None
        assert f"'{name}'" in answer.structured_content["content"]
        assert f", {name}" not in answer.structured_content["content"]


async def test_who_calls_a_tool_that_is_none_is_told_of_them(client: Client[Any]) -> None:
    answer = await client.call_tool("codex-end", {}, raise_on_error=False)
    assert answer.structured_content is not None
    assert "codex, codex-reply" in answer.structured_content["content"]


async def test_their_texts_say_what_a_caller_must_know_and_stay_short(client: Client[Any]) -> None:
    """Ours: the listing of all tools, these included, is what each caller pays for."""
    tools = await _tools(client)
    for name in CODEX_NAMES:
        text = tools[name].description or ""
        assert len(text) <= 1200
        assert "3600 s" in text
        assert "raise your client's limit" in text
        assert "{" not in text
        for prop in tools[name].input_schema["properties"].values():
            assert 20 < len(prop["description"]) <= 160
        hints = tools[name].annotations
        assert hints is not None
        given = hints.model_dump(exclude={"title"})
        assert None not in [given[key] for key in given if key.endswith("hint")]
    own = [tools[name] for name in CODEX_NAMES]
    assert sum(_cost(tool) for tool in own) <= 4_000
    assert sum(_cost(tool) for tool in tools.values()) <= 22_000


def _cost(tool: Tool) -> int:
    schema = json.dumps(tool.input_schema, separators=(",", ":"), ensure_ascii=False)
    return len(f"{tool.name}{tool.description}{schema}".encode())


def _told(answer: CallToolResult) -> tuple[str, str]:
    """Return the thread id and the content of an error, checked for its shape."""
    assert answer.is_error
    structured = answer.structured_content
    assert structured is not None
    assert set(structured) == {"threadId", "content"}
    assert answer.content[0].type == "text"
    assert structured["content"] in answer.content[0].text
    return structured["threadId"], structured["content"]


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("codex", {}, "prompt"),
        ("codex", {"prompt": " \n"}, "prompt"),
        ("codex", {"prompt": "x", "profile": "fast"}, "profile"),
        ("codex", {"prompt": "x", "include-plan-tool": True}, "include-plan-tool"),
        ("codex", {"prompt": "x", "wait-seconds": 1}, "wait-seconds"),
        ("codex", {"prompt": "x", "approval_policy": "never"}, "approval_policy"),
        ("codex", {"prompt": "x", "approval-policy": "untrusted"}, "'on-request' or 'never'"),
        ("codex", {"prompt": "x", "approval-policy": "caller"}, "'on-request' or 'never'"),
        ("codex", {"prompt": "x", "sandbox": "jail"}, "'workspace-write'"),
        ("codex", {"prompt": "x", "config": {"model_reasoning_effort": "high"}}, "config"),
        ("codex", {"prompt": "x", "config": "a=b"}, "config"),
        ("codex", {"prompt": "x", "compact-prompt": "Sum up."}, "compact-prompt"),
        ("codex", {"prompt": "x", "cwd": "/"}, "allowed folders"),
        ("codex", {"prompt": "x", "cwd": ".."}, "allowed folders"),
        ("codex", {"prompt": "x", "cwd": "x" * 4097}, "cwd"),
        ("codex", {"prompt": "x", "model": " "}, "model"),
        ("codex", {"prompt": "x", "developer-instructions": "x" * 100_001}, "100000"),
        ("codex-reply", {"prompt": "x"}, "exactly one of threadId, conversationId (none"),
        ("codex-reply", {"prompt": "x", "threadId": None}, "threadId, conversationId"),
        ("codex-reply", {"prompt": "x", "threadId": ""}, "threadId"),
        ("codex-reply", {"prompt": "x", "sessionId": "ses_1"}, "sessionId"),
        ("codex-reply", {"prompt": "x", "threadId": "x" * 201}, "200 characters"),
        (
            "codex-reply",
            {"prompt": "x", "threadId": "ses_1", "conversationId": "ses_1"},
            "threadId and conversationId were given",
        ),
    ],
)
async def test_a_wrong_call_is_refused_in_codex_shape_and_names_what_is_wrong(
    client: Client[Any], tool: str, arguments: dict[str, Any], named: str
) -> None:
    answer = await client.call_tool(tool, arguments, raise_on_error=False)
    thread_id, content = _told(answer)
    assert thread_id == ""
    assert named in content
    assert "INVALID_ARGUMENT" in content or "PATH_NOT_ALLOWED" in content


async def test_an_error_carries_the_thread_id_that_was_sent(client: Client[Any]) -> None:
    """As with Codex; its callers find out by the text which thread it was."""
    for name in ("threadId", "conversationId"):
        for arguments in ({"prompt": "x", name: "ses_gone"}, {"prompt": 1, name: "ses_gone"}):
            answer = await client.call_tool("codex-reply", arguments, raise_on_error=False)
            assert _told(answer)[0] == "ses_gone"
            assert answer.content[0].type == "text"
            assert "ses_gone" in answer.content[0].text


@pytest.mark.parametrize("nothing", [{"config": None, "compact-prompt": None}, {"config": {}}])
async def test_what_asks_for_nothing_counts_as_absent(
    client: Client[Any], nothing: dict[str, Any]
) -> None:
    nulls = dict.fromkeys(("cwd", "model", "sandbox", "approval-policy", "base-instructions"))
    arguments = {"prompt": "x", **nulls, **nothing}
    answer = await client.call_tool("codex", arguments, raise_on_error=False)
    assert "OPENCODE_UNAVAILABLE" in _told(answer)[1], "it came as far as OpenCode"


async def test_nothing_that_was_sent_is_repeated_but_ids(client: Client[Any]) -> None:
    secret = "hunter2-" * 5
    for more in ({"config": {secret: secret}}, {"compact-prompt": secret}, {"sandbox": secret}):
        arguments = {"prompt": secret, "base-instructions": secret, **more}
        answer = await client.call_tool("codex", arguments, raise_on_error=False)
        assert "hunter2" not in str(_told(answer))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_ceiling_of_the_operator_holds(tmp_path: Path, mode: str) -> None:
    ceilings = {
        "OPENCODE_MCP_CODEX_TOOLS": "true",
        "OPENCODE_MCP_MAX_SANDBOX": "read-only",
        "OPENCODE_MCP_DEFAULT_SANDBOX": "read-only",
        "OPENCODE_MCP_ALLOWED_APPROVAL_POLICIES": "caller",
        "OPENCODE_MCP_DEFAULT_APPROVAL_POLICY": "caller",
    }
    async with _opened(tmp_path, mode, **ceilings) as client:
        for more in ({"sandbox": "workspace-write"}, {"approval-policy": "never"}, {}):
            arguments = {"prompt": "x", **more}
            answer = await client.call_tool("codex", arguments, raise_on_error=False)
            assert "POLICY_NOT_ALLOWED" in _told(answer)[1]


async def test_resources_and_prompts_are_answered(client: Client[Any]) -> None:
    """Case of the Codex MCP server: it never answered these, and some clients wait for ever."""
    assert await client.list_resources() == []
    assert await client.list_resource_templates() == []
    assert await client.list_prompts() == []


def test_either_half_stays_within_its_bounds_whatever_a_result_holds() -> None:
    """Contract §3: 45,000 characters, as our server writes them."""
    result: Result = {"kind": "turn", "status": "completed", "content": "\x01" * 90_000}
    result["threadId"] = "\x01" * 200
    shaped = to_codex_result(result, {})
    assert shaped.content[0].type == "text"
    for half in (shaped.structured_content, shaped.content[0].text):
        assert len(json.dumps(half, ensure_ascii=False)) < 45_000

"""What a client learns before its first call: names, texts, schemas, hints; and what they cost."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import Client
from jsonschema import Draft202012Validator

from opencode_mcp.app.runtime import open_runtime
from opencode_mcp.callers.argument_kinds import MAX_OUTPUT_PAGE, MAX_PAGE, MAX_WAIT_S
from opencode_mcp.callers.output_pages import DEFAULT_LIST_PAGE, DEFAULT_TEXT_PAGE
from opencode_mcp.callers.server import build_server
from opencode_mcp.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp_types import Tool

_ARGUMENTS = {
    "opencode": "prompt cwd model agent variant sandbox approval-policy base-instructions"
    " developer-instructions title timeout-seconds wait-seconds output-schema request-id detail"
    " max-output-chars",
    "opencode-reply": "prompt sessionId threadId conversationId model agent variant"
    " developer-instructions timeout-seconds wait-seconds output-schema request-id detail"
    " max-output-chars",
    "opencode-status": "sessionId threadId conversationId ids wait-seconds wait-for offset limit"
    " detail max-output-chars",
    "opencode-cancel": "sessionId threadId conversationId turnId wait-ms",
    "opencode-approve": "sessionId threadId conversationId approvalId decision feedback answers",
    "opencode-info": "section cwd provider offset limit snapshot-id",
    "opencode-output": "sessionId threadId conversationId turn section offset limit diff-view"
    " file-index snapshot-id",
    "opencode-end": "sessionId threadId conversationId action",
}


@pytest.fixture(params=["legacy", "auto"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client[Any]]:
    """Give an in-memory client, of either protocol era, on a server that has no OpenCode."""
    environ = {
        "HOME": str(tmp_path / "home"),
        "OPENCODE_MCP_DATABASE": str(tmp_path / "tracking.db"),
        "OPENCODE_MCP_DEFAULT_CWD": str(tmp_path),
        "OPENCODE_MCP_OPENCODE_BIN": str(tmp_path / "there-is-none"),
    }
    settings = load_settings(environ, cwd=tmp_path)
    async with (
        open_runtime(settings, environ) as runtime,
        Client(build_server(runtime), mode=request.param) as connected,
    ):
        yield connected


async def _tools(client: Client[Any]) -> dict[str, Tool]:
    return {tool.name: tool for tool in await client.list_tools()}


async def test_the_tools_take_the_contracts_arguments_and_no_others(client: Client[Any]) -> None:
    tools = await _tools(client)
    listed = {name: " ".join(tool.input_schema["properties"]) for name, tool in tools.items()}
    assert {name: set(text.split()) for name, text in listed.items()} == {
        name: set(text.split()) for name, text in _ARGUMENTS.items()
    }
    for tool in tools.values():
        assert tool.input_schema["additionalProperties"] is False


async def test_every_tool_has_a_title_a_text_and_all_four_hints(client: Client[Any]) -> None:
    for tool in (await _tools(client)).values():
        assert re.fullmatch(r"[A-Za-z0-9_.-]+", tool.name)
        assert tool.title
        assert tool.description
        assert len(tool.description) <= 1200
        assert "{" not in tool.description
        assert tool.annotations is not None
        hints = tool.annotations.model_dump(exclude={"title"})
        assert None not in [hints[name] for name in hints if name.endswith("hint")]


async def test_every_property_says_what_a_model_can_act_on(client: Client[Any]) -> None:
    for tool in (await _tools(client)).values():
        for name, prop in tool.input_schema["properties"].items():
            assert len(prop["description"]) > 20, f"{tool.name} {name}"
            assert "title" not in prop
            assert "anyOf" not in prop


async def test_limits_and_defaults_in_the_schemas_are_the_real_ones(client: Client[Any]) -> None:
    tools = await _tools(client)
    start = tools["opencode"].input_schema["properties"]
    assert (start["wait-seconds"]["default"], start["wait-seconds"]["maximum"]) == (50, MAX_WAIT_S)
    assert start["timeout-seconds"]["default"] == 3600
    assert start["timeout-seconds"]["maximum"] == 21600
    end = tools["opencode-end"].input_schema["properties"]["action"]
    assert (end["default"], end["enum"]) == ("delete", ["delete", "archive"])
    cancel = tools["opencode-cancel"].input_schema["properties"]["wait-ms"]
    assert (cancel["default"], cancel["maximum"]) == (1000, 20_000)
    look = tools["opencode-status"].input_schema["properties"]["wait-seconds"]
    assert (look["default"], look["maximum"]) == (0, MAX_WAIT_S)
    page = tools["opencode-status"].input_schema["properties"]["limit"]
    assert (page["default"], page["maximum"]) == (20, MAX_PAGE)
    output = tools["opencode-output"].input_schema["properties"]
    assert (output["section"]["default"], output["diff-view"]["default"]) == ("answer", "stat")
    assert (output["limit"]["maximum"], "default" in output["limit"]) == (MAX_OUTPUT_PAGE, False)
    assert str(DEFAULT_TEXT_PAGE) in output["limit"]["description"]
    assert str(DEFAULT_LIST_PAGE) in output["limit"]["description"]
    for name in ("opencode", "opencode-reply", "opencode-status"):
        properties = tools[name].input_schema["properties"]
        chars = properties["max-output-chars"]
        assert (chars["default"], chars["minimum"], chars["maximum"]) == (20_000, 200, 40_000)
        detail = properties["detail"]
        assert (detail["default"], detail["enum"]) == ("standard", ["standard", "compact"])


async def test_the_listing_stays_small(client: Client[Any]) -> None:
    """Ours: each caller pays for it in context."""
    tools = (await _tools(client)).values()
    inputs = sum(
        len(f"{tool.name}{tool.description}".encode()) + _size(tool.input_schema) for tool in tools
    )
    assert inputs <= 22_000
    for tool in tools:
        assert _size(tool.output_schema) <= 6_200
    whole = await client.list_tools_mcp()
    assert len(whole.model_dump_json(by_alias=True, exclude_none=True).encode()) <= 75_000


def _size(schema: object) -> int:
    return len(json.dumps(schema, separators=(",", ":"), ensure_ascii=False).encode())


async def test_the_output_schema_is_one_and_has_no_titles_or_descriptions(
    client: Client[Any],
) -> None:
    tools = (await _tools(client)).values()
    first = next(iter(tools)).output_schema
    assert first is not None
    assert all(tool.output_schema == first for tool in tools)
    assert set(first["required"]) == {"kind", "status", "content"}
    text = json.dumps(first)
    assert not re.search(r'"(title|description)": "', text)
    Draft202012Validator.check_schema(first)


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("opencode", {}, "prompt"),
        ("opencode", {"prompt": "x", "bogus": 1}, "bogus"),
        ("opencode", {"prompt": "x", "wait-seconds": 601}, "wait-seconds"),
        ("opencode", {"prompt": "x", "wait-seconds": True}, "wait-seconds"),
        ("opencode", {"prompt": "x", "wait_seconds": 1}, "wait_seconds"),
        ("opencode", {"prompt": "x", "timeout-seconds": 999999}, "timeout-seconds"),
        ("opencode", {"prompt": ["x"]}, "prompt"),
        ("opencode", {"prompt": "x", "cwd": "relative"}, "relative"),
        ("opencode", {"prompt": "x", "sandbox": "jail"}, "sandbox"),
        ("opencode", {"prompt": "x", "detail": "full"}, "detail"),
        ("opencode", {"prompt": "x", "max-output-chars": 199}, "max-output-chars"),
        ("opencode", {"prompt": "x", "max-output-chars": 40_001}, "max-output-chars"),
        ("opencode", {"prompt": "x", "max-output-chars": True}, "max-output-chars"),
        ("opencode-status", {"max-output-chars": 500}, "max-output-chars"),
        ("opencode", {"prompt": "x", "approval-policy": "always"}, "approval-policy"),
        ("opencode", {"prompt": "x", "request-id": "x" * 201}, "request-id"),
        ("opencode", {"prompt": "x", "request-id": "two words"}, "request-id"),
        ("opencode", {"prompt": "x", "request-id": ""}, "request-id"),
        ("opencode-status", {"request-id": "x"}, "request-id"),
        ("opencode-approve", {"sessionId": "ses_1", "decision": "allow"}, "approvalId"),
        (
            "opencode-approve",
            {"sessionId": "ses_1", "approvalId": "per_1", "decision": "always"},
            "decision",
        ),
        (
            "opencode-approve",
            {"sessionId": "ses_1", "approvalId": "per_1", "decision": "allow", "feedback": "x"},
            "feedback",
        ),
        (
            "opencode-approve",
            {"sessionId": "ses_1", "approvalId": "per_1", "decision": "reject", "answers": [["x"]]},
            "answers",
        ),
        ("opencode-reply", {"prompt": "x"}, "sessionId"),
        ("opencode-status", {"sessionId": "ses_1", "threadId": "ses_1"}, "threadId"),
        ("opencode-status", {"sessionId": "ses_1", "limit": 3}, "limit"),
        ("opencode-status", {"limit": 0}, "limit"),
        ("opencode-end", {"sessionId": "ses_1", "action": "destroy"}, "action"),
        ("opencode-end", {"sessionId": "x" * 201}, "sessionId"),
        ("opencode-status", {"ids": []}, "ids"),
        ("opencode-status", {"ids": ["ses_1"] * 2}, "ids"),
        ("opencode-status", {"ids": [f"ses_{n}" for n in range(17)]}, "ids"),
        ("opencode-status", {"ids": ["ses_1"], "sessionId": "ses_2"}, "ids"),
        ("opencode-status", {"ids": ["ses_1"], "offset": 1}, "offset"),
        ("opencode-status", {"sessionId": "ses_1", "wait-for": "any"}, "wait-for"),
        ("opencode-status", {"wait-seconds": 5}, "wait-seconds"),
        ("opencode-output", {"sessionId": "ses_1"}, "turn"),
        ("opencode-output", {"turn": 1}, "sessionId"),
        ("opencode-output", {"sessionId": "ses_1", "turn": 0}, "turn"),
        ("opencode-output", {"sessionId": "ses_1", "turn": 1, "section": "all"}, "section"),
        ("opencode-output", {"sessionId": "ses_1", "turn": 1, "limit": 40001}, "limit"),
        ("opencode-output", {"sessionId": "ses_1", "turn": 1, "offset": -1}, "offset"),
        ("opencode-output", {"sessionId": "ses_1", "turn": 1, "diff-view": "stat"}, "diff-view"),
        (
            "opencode-output",
            {"sessionId": "ses_1", "turn": 1, "section": "diff", "file-index": 0},
            "file-index",
        ),
        ("opencode-cancel", {"turnId": "msg_1"}, "sessionId"),
        ("opencode-cancel", {"sessionId": "ses_1", "wait-ms": 20001}, "wait-ms"),
        ("opencode-info", {"section": "sessions"}, "section"),
        ("opencode-info", {"offset": 1}, "offset"),
        ("opencode-info", {"limit": 5, "section": "server"}, "limit"),
        ("opencode-info", {"snapshot-id": "snap_1"}, "snapshot-id"),
        ("opencode-info", {"cwd": "/srv"}, "cwd"),
        ("opencode-info", {"section": "roots", "cwd": "/srv"}, "cwd"),
        ("opencode-info", {"section": "agents", "provider": "scripted"}, "provider"),
        ("opencode-info", {"section": "models", "limit": 101}, "limit"),
        ("opencode-info", {"section": "models", "cwd": "relative"}, "relative"),
        ("opencode-info", {"sessionId": "ses_1"}, "sessionId"),
        ("opencode-approve-all", {"sessionId": "ses_1"}, "opencode-approve-all"),
    ],
)
async def test_a_wrong_call_is_refused_and_names_what_is_wrong(
    client: Client[Any], tool: str, arguments: dict[str, Any], named: str
) -> None:
    answer = await client.call_tool(tool, arguments, raise_on_error=False)
    result = answer.structured_content
    assert answer.is_error
    assert result is not None
    assert result["kind"] == "error"
    assert result["error"]["name"] in {"INVALID_ARGUMENT", "PATH_NOT_ALLOWED"}
    assert named in result["content"]
    assert [block.text for block in answer.content if block.type == "text"] == [result["content"]]


async def test_an_error_never_repeats_a_prompt(client: Client[Any]) -> None:
    secret = "hunter2-" * 5
    arguments = {"prompt": {"text": secret}, "developer-instructions": [secret]}
    answer = await client.call_tool("opencode", arguments, raise_on_error=False)
    assert answer.is_error
    assert "hunter2" not in json.dumps(answer.structured_content)


async def test_a_null_id_counts_as_absent(client: Client[Any]) -> None:
    arguments = {"sessionId": None, "threadId": "ses_unknown", "conversationId": None}
    answer = await client.call_tool("opencode-end", arguments, raise_on_error=False)
    assert answer.structured_content is not None
    assert answer.structured_content["status"] == "not_found"


async def test_a_number_sent_as_text_is_taken(client: Client[Any]) -> None:
    answer = await client.call_tool("opencode-status", {"limit": "5", "offset": "0"})
    assert answer.structured_content is not None
    assert (answer.structured_content["kind"], answer.structured_content["total"]) == (
        "sessions",
        0,
    )


async def test_a_missing_binary_is_told_with_what_to_do(client: Client[Any]) -> None:
    answer = await client.call_tool("opencode", {"prompt": "x"}, raise_on_error=False)
    assert answer.structured_content is not None
    error = answer.structured_content["error"]
    assert error["name"] == "OPENCODE_UNAVAILABLE"
    assert "OPENCODE_MCP_SERVER_URL" in error["message"]

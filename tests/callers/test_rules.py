"""The operator's ceiling over sandbox and approval policy, as callers meet it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fastmcp import Client

from opencode_mcp.app.runtime import open_runtime
from opencode_mcp.callers.server import build_server
from opencode_mcp.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path


async def call(
    folder: Path, arguments: dict[str, str], **settings: str
) -> tuple[dict[str, list[str]], str, str]:
    """Return the enums of a server with these settings, and what it says to a call."""
    environ = {
        "HOME": str(folder / "home"),
        "OPENCODE_MCP_DATABASE": str(folder / "tracking.db"),
        "OPENCODE_MCP_DEFAULT_CWD": str(folder),
        "OPENCODE_MCP_OPENCODE_BIN": str(folder / "there-is-none"),
    } | {f"OPENCODE_MCP_{name}": value for name, value in settings.items()}
    loaded = load_settings(environ, cwd=folder)
    async with open_runtime(loaded, environ) as runtime, Client(build_server(runtime)) as client:
        properties = (await client.list_tools())[0].input_schema["properties"]
        enums = {name: properties[name]["enum"] for name in ("sandbox", "approval-policy")}
        answer = await client.call_tool(
            "opencode", {"prompt": "x"} | arguments, raise_on_error=False
        )
    assert answer.structured_content is not None
    error = answer.structured_content["error"]
    return enums, str(error["name"]), str(error["message"])


@pytest.mark.parametrize(
    ("arguments", "settings", "named"),
    [
        pytest.param(
            {"sandbox": "danger-full-access"},
            {"MAX_SANDBOX": "workspace-write"},
            "workspace-write",
            id="sandbox",
        ),
        pytest.param(
            {"approval-policy": "on-request"},
            {"ALLOWED_APPROVAL_POLICIES": "never,caller"},
            "never, caller",
            id="approval-policy",
        ),
    ],
)
async def test_what_lies_beyond_the_ceiling_is_refused_and_the_ceiling_is_named(
    tmp_path: Path, arguments: dict[str, str], settings: dict[str, str], named: str
) -> None:
    enums, error, message = await call(tmp_path, arguments, **settings)

    assert error == "POLICY_NOT_ALLOWED"
    assert named in message
    for name, value in arguments.items():
        assert value not in enums[name], "it is not offered either"


async def test_without_a_ceiling_all_is_offered(tmp_path: Path) -> None:
    enums, error, _ = await call(
        tmp_path, {"sandbox": "danger-full-access", "approval-policy": "caller"}
    )

    assert enums["sandbox"] == ["read-only", "workspace-write", "danger-full-access"]
    assert enums["approval-policy"] == ["never", "on-request", "caller"]
    assert error == "OPENCODE_UNAVAILABLE", "it got past the ceiling"

"""`opencode-info server`: what it tells, what it must not tell, and that it starts nothing."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import Client

from opencode_mcp import __version__
from opencode_mcp.app.runtime import open_runtime
from opencode_mcp.callers.server import build_server
from opencode_mcp.callers.server_facts import TOLD, shown_path
from opencode_mcp.settings import load_settings
from opencode_mcp.settings_model import NAMES, SECRETS
from tests.support.bridge import Bridge, shapes_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridge import Answer

_MARK = "marked-secret-0123456789"


def environ(folder: Path, **settings: str) -> dict[str, str]:
    """Return that of a server whose OpenCode leaves a trace if it is started."""
    binary = folder / "opencode"
    binary.write_text(f"#!/bin/sh\ntouch {folder}/started\nexit 1\n", encoding="utf-8")
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    given = {
        "DATABASE": str(folder / "tracking.db"),
        "DEFAULT_CWD": str(folder),
        "OPENCODE_BIN": str(binary),
        **settings,
    }
    found = {f"OPENCODE_MCP_{name}": value for name, value in given.items()}
    return {"HOME": str(folder / "home"), "PATH": "/usr/bin:/bin", **found}


async def ask(env: dict[str, str], folder: Path, *sections: str) -> list[Answer]:
    """Return what a server with this environment says of these sections."""
    settings = load_settings(env, cwd=folder)
    async with open_runtime(settings, env) as runtime, Client(build_server(runtime)) as client:
        bridge = Bridge(client, await shapes_of(client))
        return [await bridge.call("opencode-info", section=section) for section in sections]


async def test_a_managed_opencode_is_neither_started_nor_asked(tmp_path: Path) -> None:
    (answer, roots) = await ask(environ(tmp_path), tmp_path, "server", "roots")
    assert not answer.is_error
    assert "availability" not in answer.structured
    assert answer.structured["server"]["mode"] == "managed"
    assert "started by the first call" in answer.text
    assert roots.structured["roots"] == [str(tmp_path)]
    assert not (tmp_path / "started").exists()
    assert not (tmp_path / "tracking.db.instances").exists()
    (models,) = await ask(environ(tmp_path), tmp_path, "models")
    assert models.error == "OPENCODE_UNAVAILABLE"
    assert (tmp_path / "started").exists(), "the trap works"


async def test_an_attached_opencode_that_is_not_there_is_told(tmp_path: Path) -> None:
    env = environ(tmp_path, SERVER_URL="http://127.0.0.1:9")
    (answer,) = await ask(env, tmp_path, "server")
    assert answer.structured["availability"] == "opencode_unreachable"
    assert "OPENCODE_UNAVAILABLE" in answer.text


async def test_the_defaults_and_ceilings_are_those_in_force(tmp_path: Path) -> None:
    env = environ(
        tmp_path,
        DEFAULT_MODEL="a/b",
        DEFAULT_SANDBOX="read-only",
        MAX_SANDBOX="workspace-write",
        ALLOWED_APPROVAL_POLICIES="never,caller",
        DEFAULT_WAIT_SECONDS="7",
        END_ACTION="archive",
        MAX_SESSIONS="12",
    )
    (answer,) = await ask(env, tmp_path, "server")
    server: dict[str, Any] = answer.structured["server"]
    expected = {
        "version": __version__,
        "transport": "stdio",
        "defaultModel": "a/b",
        "defaultSandbox": "read-only",
        "maxSandbox": "workspace-write",
        "allowedApprovalPolicies": "never,caller",
        "defaultApprovalPolicy": "never",
        "defaultWaitSeconds": 7,
        "maxWaitSeconds": 600,
        "turnTimeoutSeconds": 3600,
        "maxTurnTimeoutSeconds": 21600,
        "maxOutputChars": 20000,
        "endAction": "archive",
        "onCallCancel": "abort",
        "maxSessions": 12,
    }
    assert {name: server.get(name) for name in expected} == expected
    assert "defaultAgent" not in server, "OpenCode's own"
    for name, value in expected.items():
        assert str(value) in answer.text, name
    assert answer.structured["directory"] == str(tmp_path)
    assert answer.structured["roots"] == [str(tmp_path)]


async def test_over_http_the_ceiling_is_that_of_http(tmp_path: Path) -> None:
    env = environ(tmp_path, TRANSPORT="http", AUTH_TOKENS=f"alice:{_MARK}")
    (answer,) = await ask(env, tmp_path, "server")
    server = answer.structured["server"]
    assert (server["transport"], server["maxSandbox"]) == ("http", "workspace-write")


@pytest.mark.parametrize("mode", ["attach", "managed"])
async def test_no_secret_and_nothing_about_other_callers_is_told(tmp_path: Path, mode: str) -> None:
    """Also in what goes wrong: the OpenCode is not there."""
    (tmp_path / "home").mkdir()
    attach = {
        "SERVER_URL": f"http://127.0.0.1:9/{_MARK}",
        "SERVER_PASSWORD": _MARK,
        "SERVER_USERNAME": _MARK,
    }
    managed = {
        "SERVE_ARGS": f"--print-logs {_MARK}",
        "CHILD_ENV": "KEY_*",
        "ALLOW_SHARED_MANAGED": "true",
    }
    env = environ(
        tmp_path,
        TRANSPORT="http",
        AUTH_TOKENS=f"alice:{_MARK},marked-bob:{_MARK}x",
        ADMINS="token:marked-bob",
        ALLOWED_HOSTS="marked.example.org",
        DATABASE=str(tmp_path / "marked.db"),
        **(attach if mode == "attach" else managed),
    )
    env |= {"KEY_ONE": _MARK, "OPENCODE_SERVER_PASSWORD": _MARK}
    answers = await ask(env, tmp_path, "server", "roots", "models", "agents")
    said = json.dumps([answer.structured for answer in answers[:2]])
    assert "marked" not in said
    # which route at which address failed may be told; never a password
    errors = json.dumps([answer.structured for answer in answers[2:]])
    assert [answer.error for answer in answers[2:]] == ["OPENCODE_UNAVAILABLE"] * 2
    assert _MARK not in errors.replace(f"127.0.0.1:9/{_MARK}", "")


def test_what_is_told_is_a_setting_and_no_secret() -> None:
    assert set(TOLD) <= set(NAMES)
    assert not set(TOLD) & (SECRETS | {"server_url", "auth_tokens_file", "database", "admins"})


async def test_many_roots_are_said_to_be_more(tmp_path: Path) -> None:
    folders = [tmp_path / f"r{n:02}" for n in range(12)]
    for folder in folders:
        folder.mkdir()
    roots = ":".join(map(str, folders))
    env = environ(tmp_path, ALLOWED_ROOTS=roots, DEFAULT_CWD=str(folders[0]))
    (answer,) = await ask(env, tmp_path, "server")
    assert len(answer.structured["roots"]) == 10
    assert answer.structured["omittedFields"] == ["roots"]
    assert "and 2 more" in answer.text


def test_a_folder_whose_name_is_no_text_can_be_told() -> None:
    assert shown_path("/a/\udcff") == "/a/\\udcff"
    assert len(shown_path("/" + "x" * 4_000)) == 300

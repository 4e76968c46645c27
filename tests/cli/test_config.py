"""`config`: what is in force, where it comes from, and never a secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opencode_mcp.settings_model import NAMES
from tests.cli.command import Command

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2-hunter2-hunter2"


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command({"HOME": str(tmp_path / "home"), "PATH": "/bin"}).with_settings(
        DEFAULT_CWD=str(tmp_path)
    )


def found(command: Command, *more: str) -> dict[str, dict[str, object]]:
    said = command.run_now("config", "--json", *more)
    assert said.code == 0, said.err
    return {one["name"]: one for one in said.json["settings"]}


def test_every_setting_is_there_in_the_order_of_the_documentation(command: Command) -> None:
    assert list(found(command)) == list(NAMES)
    lines = command.run_now("config").out.splitlines()
    assert [line.split()[0] for line in lines] == ["SETTING", *NAMES]


@pytest.mark.parametrize("as_json", [("--json",), ()], ids=["json", "table"])
def test_secrets_are_hidden_and_their_source_is_told(
    command: Command, tmp_path: Path, as_json: tuple[str, ...]
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"alice:{SECRET}\n", encoding="utf-8")
    command = command.with_settings(
        SERVER_URL="https://oc.example.org",
        SERVER_PASSWORD=SECRET,
        TRANSPORT="http",
        AUTH_TOKENS_FILE=str(tokens),
    )
    said = command.run_now("config", *as_json)
    assert said.code == 0, said.err
    assert SECRET not in said.out + said.err
    entries = found(command)
    assert entries["server_password"]["isSet"] is True
    assert entries["server_password"]["value"] is None
    assert entries["server_password"]["source"] == "OPENCODE_MCP_SERVER_PASSWORD"
    source = entries["auth_tokens"]["source"]
    assert source == "the file that OPENCODE_MCP_AUTH_TOKENS_FILE names"
    if not as_json:
        assert "alice (tokens hidden)" in said.out


def test_where_derived_settings_come_from_is_told(command: Command, tmp_path: Path) -> None:
    command = command.with_settings(TRANSPORT="http", SERVER_URL="http://localhost:4096/")
    command.env["OPENCODE_SERVER_PASSWORD"] = SECRET
    entries = found(command)
    assert entries["mode"]["source"] == "default, since OPENCODE_MCP_SERVER_URL is set"
    assert entries["server_url"]["value"] == "http://127.0.0.1:4096"
    assert entries["server_password"]["source"] == "OPENCODE_SERVER_PASSWORD"
    assert entries["max_sandbox"]["source"] == "default for http"
    assert entries["allowed_roots"] | {"variable": ""} == {
        "name": "allowed_roots",
        "variable": "",
        "value": [str(tmp_path)],
        "source": "default, the default folder",
    }


def test_the_project_of_claude_code_is_named_as_the_source(
    command: Command, tmp_path: Path
) -> None:
    command = command.with_settings(DEFAULT_CWD="")
    command.env["CLAUDE_PROJECT_DIR"] = str(tmp_path)
    assert found(command)["default_cwd"]["source"] == "default, from CLAUDE_PROJECT_DIR"


def test_given_leaves_the_plain_defaults_out(command: Command) -> None:
    assert set(found(command, "--given")) == {"default_cwd", "allowed_roots"}


def test_service_links_of_kubernetes_are_named(command: Command) -> None:
    said = command.with_settings(SERVICE_HOST="10.0.0.1").run_now("config", "--json")
    assert said.json["ignoredVariables"] == ["OPENCODE_MCP_SERVICE_HOST"]


def test_wrong_settings_are_told_and_nothing_else(command: Command) -> None:
    said = command.with_settings(SERVER_PASSWORD=SECRET, PORT="x", HSOT="y").run_now("config")
    assert (said.code, said.out) == (2, "")
    assert "OPENCODE_MCP_HSOT: unknown variable; the nearest known one is OPENCODE_MCP_HOST" in (
        said.err
    )
    assert SECRET not in said.err

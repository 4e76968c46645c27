"""The recipes of examples/clients: docs/clients.md shows them, and our server takes them."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.settings import load_settings
from tests.real.support.sandbox import REPOSITORY
from tests.support.recipes import RECIPES, server_of

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted(file for file in RECIPES.glob("*/*") if file.is_file())
_PREFIX = "OPENCODE_MCP_"


@pytest.fixture(params=FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def file(request: pytest.FixtureRequest) -> Path:
    """Each recipe."""
    found: Path = request.param
    return found


def test_each_client_has_its_three_recipes() -> None:
    clients = {file.parent.name for file in FILES}

    assert clients == {"claude-code", "codex", "cursor", "vscode", "claude-desktop"}
    assert {(file.parent.name, file.stem) for file in FILES} == {
        (client, way) for client in clients for way in ("stdio", "docker", "http")
    }


def test_the_docs_show_it_word_for_word(file: Path) -> None:
    docs = (REPOSITORY / "docs" / "clients.md").read_text(encoding="utf-8")

    assert f"```{file.suffix[1:]}\n{file.read_text(encoding='utf-8')}```\n" in docs


def test_the_settings_in_it_are_taken(file: Path, tmp_path: Path) -> None:
    server = server_of(file)
    given = dict(server.get("env", {}))
    arguments = server.get("args", [])
    for option, value in itertools.pairwise(arguments):
        if option == "-e" and "=" in value:
            given |= dict([value.split("=", 1)])
    ours = {
        name: re.sub(r"\$\{\w+\}|/home/me/project", str(tmp_path), value)
        for name, value in given.items()
        if name.startswith(_PREFIX)
    }
    ours.setdefault(f"{_PREFIX}DEFAULT_CWD", str(tmp_path))

    load_settings({"HOME": "/nowhere"} | ours, cwd=tmp_path)


def test_a_wait_in_it_ends_before_the_clients_own_limit(file: Path) -> None:
    server = server_of(file)
    text = file.read_text(encoding="utf-8")
    waits = [int(found) for found in re.findall(r"DEFAULT_WAIT_SECONDS\W+(\d+)", text)] or [50]

    limits = {"claude-code": 120, "codex": server.get("tool_timeout_sec", 0)}
    assert waits[0] < limits.get(file.parent.name, 60)


def test_a_container_in_it_is_run_as_the_docs_say(file: Path) -> None:
    server = server_of(file)
    if file.stem != "docker":
        assert server.get("command") != "docker"
        return
    arguments = server["args"]

    assert arguments[:3] == ["run", "-i", "--rm"]
    assert arguments[-1] == "opencode-mcp:bundled"
    assert "opencode-mcp:/data" in arguments
    assert any(argument.endswith(":/workspace") for argument in arguments)
    assert not {"-t", "-it"} & set(arguments)


def test_a_url_in_it_is_the_servers_own_default(file: Path, tmp_path: Path) -> None:
    if file.stem != "http":
        return
    settings = load_settings({"HOME": "/nowhere"}, cwd=tmp_path)
    url = f"http://{settings.host}:{settings.port}{settings.http_path}"

    assert url in file.read_text(encoding="utf-8")

"""Every `docker run` that our documents give a client: it is run, word for word."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from tests.real.support.sandbox import REPOSITORY
from tests.real.support.scripts import bash
from tests.support.recipes import RECIPES, server_of
from tests_image.support.clients import over_stdio
from tests_image.support.docker_run import container_of

if TYPE_CHECKING:
    from pathlib import Path

_KEYS = {"ANTHROPIC_API_KEY": "sk-of-a-test", "OPENAI_API_KEY": "sk-of-a-test"}
_LOGIN = {"nobody": {"type": "api", "key": "sk-of-a-test"}}
#: what the agent finds of the two ways to give it a key. OpenCode knows what `cat` does, and would
#: ask for leave outside of the project
_LOOK = "(printenv ANTHROPIC_API_KEY OPENAI_API_KEY; grep . ~/.local/share/opencode/auth.json)"
#: it is about the user
_WITHOUT_A_KEY = {"docs/container.md-2"}
_SHELLS = {"$(id -u):$(id -g)": "12345:12345"}
_FENCED = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands_of(document: str) -> list[list[str]]:
    """Return the arguments of `docker` in each line that serves a client from `bundled`."""
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    lines = "".join(_FENCED.findall(text)).replace("\\\n", " ").splitlines()
    found = [shlex.split(line) for line in lines if "docker run -i" in line]
    return [words[words.index("docker") + 1 :] for words in found if "bundled" in words[-1]]


DOCKER_RUNS: dict[str, list[str]] = {
    **{file.parent.name: server_of(file)["args"] for file in sorted(RECIPES.glob("*/docker.*"))},
    **{
        f"{document}-{number}": arguments
        for document in ("README.md", "docs/container.md")
        for number, arguments in enumerate(commands_of(document), 1)
    },
}


def test_these_are_all() -> None:
    clients = {"claude-code", "codex", "cursor", "vscode", "claude-desktop"}

    assert clients | {"README.md-1", "docs/container.md-1", "docs/container.md-2"} == {*DOCKER_RUNS}


@pytest.mark.parametrize("name", DOCKER_RUNS)
async def test_a_client_that_runs_it_delegates_and_ends_with_the_key_it_gave(
    name: str, volume: Path, workspace: Path, tmp_path: Path
) -> None:
    login = tmp_path / "auth.json"
    login.write_text(json.dumps(_LOGIN), encoding="utf-8")
    login.chmod(0o644)  # as Docker Desktop shows it: readable for the image's user
    places = {
        "opencode-mcp": volume,
        "/home/me/.local/share/opencode/auth.json": login,
        **dict.fromkeys(("$PWD", "${PWD}", "${workspaceFolder}", "/home/me/project"), workspace),
    }
    words = [_SHELLS.get(word, word) for word in DOCKER_RUNS[name]]
    async with over_stdio(container_of(words, places, _KEYS), tmp_path / "log") as bridge:
        prompt = f"{bash(f'{_LOOK} > seen; true')}\nTHEN\nSAY:done"
        answer = await bridge.call("opencode", prompt=prompt)
        assert answer.status == "completed", answer.text
        assert answer.structured["directory"] == "/workspace"
        assert (await bridge.end(answer.session_id)).status == "ended"
    seen = (workspace / "seen").read_text(encoding="utf-8")
    assert ("sk-of-a-test" in seen) is (name not in _WITHOUT_A_KEY)

"""`docker run -i --rm IMAGE`: the main job inside the bundled image, as the image's user."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests_image.support.clients import over_stdio
from tests_image.support.container import Container, gone, namespaces, run_to_end

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests_image.support.image import Image


def shell(command: str) -> str:
    """Return a prompt that makes the agent run this."""
    call = {"name": "bash", "args": {"command": command, "description": "try"}}
    return f"TOOL:{json.dumps(call)}\nTHEN\nSAY:done"


async def test_a_session_from_start_to_end(
    managed: Callable[..., Container], workspace: Path, tmp_path: Path
) -> None:
    async with over_stdio(managed(), tmp_path / "log") as bridge:
        answer = await bridge.call("opencode", prompt="SAY:hello from the container")
        assert answer.status == "completed"
        assert "hello from the container" in answer.text
        assert answer.structured["directory"] == "/workspace"
        session_id = answer.session_id
        reply = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:again")
        assert reply.structured["turn"] == 2
        assert await bridge.listed() == {session_id: "idle"}

        ended = await bridge.end(session_id)
        assert ended.structured["cleanup"] == "complete"
        assert await bridge.is_ended(session_id)
    await gone(namespaces())
    assert [path.name for path in workspace.iterdir()] == ["README.md"]


@pytest.mark.parametrize("user", ["", "12345", "12345:12345"], ids=["own", "other", "other-group"])
async def test_an_agent_works_in_the_mounted_project_as_the_user(
    managed: Callable[..., Container], workspace: Path, tmp_path: Path, user: str
) -> None:
    """With git, though the project belongs to somebody else, and with ripgrep."""
    command = "git init -q . && git status --short > seen && rg -l project >> seen && id -u >> seen"
    async with over_stdio(managed(user=user), tmp_path / "log") as bridge:
        answer = await bridge.call("opencode", prompt=shell(command))
        assert answer.status == "completed", answer.text
        seen = (workspace / "seen").read_text(encoding="utf-8").split()
        assert seen == [
            "??",
            "README.md",
            "??",
            "seen",
            "README.md",
            user.partition(":")[0] or "65532",
        ]
        await bridge.end(answer.session_id)


async def test_the_next_container_goes_on_with_the_sessions_in_the_volume(
    managed: Callable[..., Container], tmp_path: Path
) -> None:
    """`--rm` loses nothing: neither what we track nor what OpenCode keeps."""
    async with over_stdio(managed(), tmp_path / "first") as bridge:
        session_id = (await bridge.call("opencode", prompt="SAY:remember the word fig")).session_id
    await gone(namespaces())
    async with over_stdio(managed(), tmp_path / "second") as bridge:
        assert await bridge.listed() == {session_id: "idle"}
        reply = await bridge.call("opencode-reply", sessionId=session_id, prompt="SAY:which word?")
        assert reply.structured["turn"] == 2
        output = await bridge.call("opencode-status", sessionId=session_id)
        assert output.structured["turn"] == 2
        assert (await bridge.end(session_id)).status == "ended"


async def test_two_containers_at_once_on_one_volume_have_an_opencode_each(
    managed: Callable[..., Container], tmp_path: Path
) -> None:
    """Each has a loopback of its own, so neither can use the other's. No model is within reach."""
    first, second = managed(network="none"), managed(network="none")
    async with (
        over_stdio(first, tmp_path / "first") as one,
        over_stdio(second, tmp_path / "second") as other,
    ):
        mine = await one.begin("SAY:x", "/workspace")  # type: ignore[arg-type]
        theirs = await other.begin("SAY:x", "/workspace")  # type: ignore[arg-type]
        listed = await other.listed()
        assert listed.keys() == {mine, theirs}
        assert listed[mine] == "unknown", "it lives where this one cannot see it"
        await other.end(theirs)
        await one.end(mine)
        assert await other.listed() == {}


async def test_no_client_is_told_with_what_is_missing(image: Image, tmp_path: Path) -> None:
    """Case B33: `docker run --rm IMAGE`, without -i."""
    data = image.fresh_volume(tmp_path / "data")
    env = {"OPENCODE_MCP_SERVER_URL": "http://127.0.0.1:9"}
    code, out, err = await run_to_end(Container(image, env=env, mounts=[f"bind:{data}:/data"]))
    assert code == 0
    assert out == ""
    assert "docker run -i" in err
    assert "Traceback" not in err


async def test_a_runtime_container_without_an_address_names_what_is_missing(
    runtime: Image,
) -> None:
    code, out, err = await run_to_end(Container(runtime, mounts=["tmpfs:mode=1777:/data"]))
    assert code == 2
    assert out == ""
    assert "OPENCODE_MCP_SERVER_URL" in err
    assert "the `bundled` image" in err

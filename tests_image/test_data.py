"""Case B39: the volume cannot be written. One clear line and an exit code."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from tests_image.support.clients import over_stdio
from tests_image.support.container import Container, run_to_end

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests_image.support.image import Image

ENV = {"OPENCODE_MCP_SERVER_URL": "http://127.0.0.1:9"}


async def refused(image: Image, mount: str, *, user: str = "") -> str:
    """Run it on that volume; return the one line that it says."""
    container = Container(image, env=ENV, user=user, mounts=[mount])
    began = time.monotonic()
    code, out, err = await run_to_end(container, stdin=b"")
    assert code == 1
    assert out == ""
    assert time.monotonic() - began < 20, "it does not try for long, even on a busy machine"
    (line,) = err.splitlines()
    assert "Traceback" not in line
    assert "/data/opencode-mcp.db" in line
    assert f"as user id {user.partition(':')[0] or '65532'}" in line
    return line


async def test_a_volume_that_is_mounted_read_only(image: Image, tmp_path: Path) -> None:
    data = image.fresh_volume(tmp_path / "data")
    assert "Read-only file system" in await refused(image, f"bind-ro:{data}:/data")


@pytest.mark.parametrize("user", ["", "12345", "12345:12345"])
async def test_a_volume_that_belongs_to_somebody_else(
    image: Image, tmp_path: Path, user: str
) -> None:
    """Also a folder that Docker made for a bind mount: root's, 755."""
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    os.chown(data, 1000, 1000)
    line = await refused(image, f"bind:{data}:/data", user=user)
    assert "Permission denied" in line
    assert "make the file and its folder writable for that user" in line


async def test_a_database_that_belongs_to_the_user_before(image: Image, tmp_path: Path) -> None:
    """Its file is its owner's alone: another --user on an old volume is told so."""
    data = image.fresh_volume(tmp_path / "data")
    mount = f"bind:{data}:/data"
    code, _, err = await run_to_end(Container(image, env=ENV, mounts=[mount]), stdin=b"")
    assert code == 0, err
    assert "Permission denied" in await refused(image, mount, user="12345")


async def test_a_volume_without_any_space(image: Image) -> None:
    line = await refused(image, "tmpfs:size=4k,mode=1777:/data")
    assert "space" in line or "full" in line


async def test_no_volume_at_all_works_until_the_container_is_gone(image: Image) -> None:
    """Without -v the engine makes one; here it is a part of the container's own layer."""
    container = Container(image, env=ENV, read_only=False)
    code, _, err = await run_to_end(container, stdin=b"")
    assert code == 0, err


async def test_without_a_writable_tmp_opencode_says_what_it_needs(
    managed: Callable[..., Container], tmp_path: Path
) -> None:
    """--read-only without --tmpfs /tmp: ours starts, the OpenCode in it does not."""
    whole = managed()
    mounts = [mount for mount in whole.mounts if not mount.startswith("tmpfs:")]
    container = Container(whole.image, env=whole.env, mounts=mounts)
    async with over_stdio(container, tmp_path / "log") as bridge:
        answer = await bridge.call("opencode", prompt="SAY:x")
        assert answer.error == "OPENCODE_UNAVAILABLE"
        assert "read-only file system" in answer.text
        assert "/tmp" in answer.text

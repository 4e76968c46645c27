"""An OpenCode in a container of its own, as compose.yaml runs it, for `runtime` to attach to."""

from __future__ import annotations

import json
import secrets
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opencode_mcp.cli.scripted_model import opencode_config
from tests.support.polling import eventually
from tests_image.support.container import Container, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.http_bridge import HttpServer
    from tests_image.support.container import Running
    from tests_image.support.image import Image

PORT = 4096


@dataclass(frozen=True, slots=True)
class Opencode:
    """One that is well."""

    password_file: Path

    @property
    def settings(self) -> dict[str, str]:
        """What a server of ours needs in order to reach it."""
        return {
            "OPENCODE_MCP_SERVER_URL": f"http://127.0.0.1:{PORT}",
            "OPENCODE_MCP_SERVER_PASSWORD_FILE": "/run/secrets/opencode_password",
        }

    @property
    def mounts(self) -> list[str]:
        """The secret's file."""
        return [f"bind-ro:{self.password_file}:/run/secrets/opencode_password"]


@asynccontextmanager
async def open_opencode(
    bundled: Image, folder: Path, workspace: Path, model_url: str
) -> AsyncIterator[Opencode]:
    """Run it until it is well; its own health check says so."""
    folder.mkdir()
    volume = bundled.fresh_volume(folder / "data")
    config = volume / ".config" / "opencode" / "opencode.json"
    config.write_text(json.dumps(opencode_config(model_url)), encoding="utf-8")
    password = folder / "password"
    password.write_text(f"{secrets.token_hex(16)}\n", encoding="utf-8")
    password.chmod(0o644)
    found = Opencode(password)
    container = Container(
        bundled,
        ("--hostname", "0.0.0.0", "--port", str(PORT)),
        entrypoint=("tini", "--", "opencode-serve"),
        env={
            "OPENCODE_SERVER_PASSWORD_FILE": "/run/secrets/opencode_password",
            "OPENCODE_DISABLE_AUTOUPDATE": "true",
            "OPENCODE_DISABLE_SHARE": "true",
            "OPENCODE_DISABLE_MODELS_FETCH": "true",
        },
        mounts=[
            *found.mounts,
            f"bind:{volume}:/data",
            f"bind:{workspace}:/workspace",
            "tmpfs:mode=1777:/tmp",
        ],
    )
    async with running(container, folder / "opencode.log") as one:
        await well(one, "opencode-healthcheck", str(PORT))
        yield found


async def ready(server: HttpServer) -> None:
    """Wait until a server of ours says that it reaches its database and OpenCode.

    The first look at OpenCode may take longer than a probe waits.
    """

    async def ask() -> bool:
        found = (await server.get("/readyz")).json
        return bool(found == {"status": "ok", "database": "ok", "opencode": "ok"})

    await eventually(ask, what="the server is ready")


async def well(server: Running, *check: str) -> None:
    """Wait until its health check is content: the image's own, or this one."""

    async def ask() -> bool:
        assert server.process.returncode is None, server.said()
        code, _ = await (server.execute(*check) if check else server.health())
        return code == 0

    await eventually(ask, within_s=90, what="the container is healthy")

"""compose.yaml: valid for the real `docker compose`, hardened, and what it says works.

There is no engine here, so its two services are run as it describes them (user, read-only root,
mounts, secrets, health checks, order), on one loopback instead of a network between them.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from opencode_mcp.cli.scripted_model import opencode_config
from tests.support.http_bridge import HttpServer
from tests_image.support.container import Container, running
from tests_image.support.image import REPOSITORY, Image
from tests_image.support.opencode import ready, well

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import Json, ScriptedModel

COMPOSE = REPOSITORY / ".cache" / "image" / "tools" / "bin" / "docker-compose"
#: whom the projects and the secrets belong to
USER = 12345
TOKEN = "0123456789abcdef-token"
PASSWORD = "a-password-of-24-letters"


def config(**env: str) -> subprocess.CompletedProcess[str]:
    """Have compose read the file, and say what it understood."""
    return subprocess.run(
        [COMPOSE, "--file", REPOSITORY / "compose.yaml", "config", "--format", "json"],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def understood(workspace: Path) -> Json:
    """The file as compose reads it, with everything that an operator must say."""
    done = config(WORKSPACE=str(workspace), USER_ID=str(USER), GROUP_ID=str(USER))
    assert done.returncode == 0, done.stderr
    assert not done.stderr, "no warnings either"
    found: Json = json.loads(done.stdout)
    return found


def test_what_an_operator_must_say_is_asked_for() -> None:
    done = config()
    assert done.returncode != 0
    assert "set WORKSPACE to the folder of the projects" in done.stderr


def test_every_container_is_confined(understood: Json) -> None:
    services = understood["services"]
    assert services.keys() == {"opencode", "opencode-mcp"}
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["user"] == f"{USER}:{USER}"
        assert "privileged" not in service
        for key in ("environment", "command"):
            assert "password=" not in json.dumps(service.get(key)).lower()
    assert "ports" not in services["opencode"]
    (port,) = services["opencode-mcp"]["ports"]
    assert port["host_ip"] == "127.0.0.1"
    assert services["opencode-mcp"]["depends_on"]["opencode"]["condition"] == "service_healthy"
    assert "test" in services["opencode"]["healthcheck"]
    assert not services["opencode-mcp"].get("healthcheck"), "the image has its own"


def test_its_secrets_are_not_under_version_control() -> None:
    for name in ("opencode_password", "auth_tokens"):
        done = subprocess.run(
            ["git", "check-ignore", "--quiet", f"secrets/{name}"], cwd=REPOSITORY, check=False
        )
        assert done.returncode == 0


@dataclass(frozen=True, slots=True)
class Project:
    """What an operator has beside compose.yaml, and what Docker makes of it."""

    folder: Path
    model_url: str
    understood: Json

    def container(self, name: str) -> Container:
        """Return one of the services as the file describes it."""
        service = self.understood["services"][name]
        image = Image.of(service["image"].partition(":")[2])
        env = {key: value for key, value in service["environment"].items() if value is not None}
        return Container(
            image,
            service.get("command") or (),
            entrypoint=service.get("entrypoint"),
            env=env,
            user=service["user"],
            mounts=[
                *(self._mount(volume, image) for volume in service["volumes"]),
                *(self._secret(secret) for secret in service["secrets"]),
                *(_tmpfs(text) for text in service["tmpfs"]),
                f"bind-ro:{self._hosts()}:/etc/hosts",
            ],
            read_only=service["read_only"],
        )

    def _mount(self, volume: dict[str, Any], image: Image) -> str:
        if volume["type"] == "bind":
            return f"bind:{volume['source']}:{volume['target']}"
        place = self.folder / volume["source"]
        if not place.exists():
            image.fresh_volume(place)
            known = place / ".config" / "opencode" / "opencode.json"
            known.write_text(json.dumps(opencode_config(self.model_url)), encoding="utf-8")
        return f"bind:{place}:{volume['target']}"

    def _secret(self, secret: dict[str, str]) -> str:
        contents = {"opencode_password": PASSWORD, "auth_tokens": f"alice:{TOKEN}"}
        file = self.folder / secret["source"]
        file.write_text(f"{contents[secret['source']]}\n", encoding="utf-8")
        file.chmod(0o600)
        os.chown(file, USER, USER)
        return f"bind-ro:{file}:{secret['target']}"

    def _hosts(self) -> Path:
        """A name for each service, as compose's own resolver has it."""
        file = self.folder / "hosts"
        names = " ".join(self.understood["services"])
        file.write_text(f"127.0.0.1 localhost {names}\n", encoding="utf-8")
        file.chmod(0o644)
        return file


def _tmpfs(text: str) -> str:
    place, _, options = text.partition(":")
    return f"tmpfs:{options}:{place}"


async def test_its_services_work_together(
    understood: Json, model: ScriptedModel, workspace: Path, tmp_path: Path
) -> None:
    project = Project(tmp_path, model.url, understood)
    check = understood["services"]["opencode"]["healthcheck"]["test"]
    assert check[0] == "CMD"
    async with AsyncExitStack() as stack:
        opencode = await stack.enter_async_context(
            running(project.container("opencode"), tmp_path / "opencode.log")
        )
        await well(opencode, *check[1:])
        server = await stack.enter_async_context(
            running(project.container("opencode-mcp"), tmp_path / "server.log")
        )
        await well(server)
        http = HttpServer("http://127.0.0.1:8000")
        await ready(http)
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        assert (await http.post(listing)).status == 401
        async with http.stack:
            caller = await http.caller(TOKEN)
            command = {"name": "bash", "args": {"command": "id -u > seen", "description": "who"}}
            prompt = f"TOOL:{json.dumps(command)}\nTHEN\nSAY:done"
            answer = await caller.call("opencode", prompt=prompt)
            assert answer.status == "completed", answer.text
            assert answer.structured["directory"] == "/workspace"
            assert (await caller.end(answer.session_id)).status == "ended"
        assert (workspace / "seen").read_text(encoding="utf-8") == f"{USER}\n"
        assert (workspace / "seen").stat().st_uid == USER
        assert await server.stop() == 0
        assert PASSWORD not in opencode.said() + server.said()
        assert TOKEN not in server.said()


def test_opencode_does_not_run_without_its_password(bundled: Image) -> None:
    """A missing or unreadable secret is told; nothing listens without a password."""
    missing = Container(
        bundled,
        entrypoint=("tini", "--", "opencode-serve"),
        env={"OPENCODE_SERVER_PASSWORD_FILE": "/run/secrets/none"},
    )
    for container, why in (
        (missing, "/run/secrets/none cannot be read as user id 65532"),
        (Container(bundled, entrypoint=missing.entrypoint), "no password"),
    ):
        done = subprocess.run(
            container.argv(), capture_output=True, text=True, check=False, timeout=30
        )
        assert done.returncode == 2
        assert why in done.stderr

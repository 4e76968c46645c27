"""What a `docker run` in our documents asks for, as a container of these tests."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from tests_image.support.container import Container
from tests_image.support.image import Image

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_VOLUME = re.compile(r"(?P<what>.+?):(?P<inside>/[^:]*)(?P<mode>:ro)?")


def container_of(
    arguments: Sequence[str], places: Mapping[str, Path], env: Mapping[str, str]
) -> Container:
    """Read the arguments of `docker`, of which the first is `run`.

    `places`: what the volumes and folders that it names are here. `env`: the environment of who
    calls it, whence `-e NAME` has its value. An option that is not known here ends the test.
    """
    assert arguments[0] == "run"
    asked = _options().parse_args(arguments[1:])
    assert asked.interactive, "without -i there is no client"
    assert asked.rm, "without --rm containers pile up"
    name, _, target = asked.image.partition(":")
    assert name == "opencode-mcp"
    return Container(
        Image.of(target),
        command=asked.command,
        env=dict(_variables(asked.env, env)),
        user=asked.user,
        mounts=[
            *(_mount(volume, places) for volume in asked.volume),
            *(f"tmpfs:mode=1777:{place}" for place in asked.tmpfs),
        ],
        read_only=asked.read_only,
    )


def _options() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(allow_abbrev=False)
    found.add_argument("-i", "--interactive", action="store_true")
    found.add_argument("--rm", action="store_true")
    found.add_argument("--read-only", action="store_true")
    found.add_argument("--tmpfs", action="append", default=[])
    found.add_argument("--user", default="")
    found.add_argument("-v", "--volume", action="append", default=[])
    found.add_argument("-e", "--env", action="append", default=[])
    found.add_argument("image")
    found.add_argument("command", nargs=argparse.REMAINDER)
    return found


def _variables(said: Sequence[str], env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for entry in said:
        name, has_value, value = entry.partition("=")
        if has_value or name in env:  # as docker: one that its caller does not have is left out
            yield name, value if has_value else env[name]


def _mount(volume: str, places: Mapping[str, Path]) -> str:
    found = _VOLUME.fullmatch(volume)
    assert found is not None, volume
    kind = "bind-ro" if found["mode"] else "bind"
    return f"{kind}:{places[found['what']]}:{found['inside']}"

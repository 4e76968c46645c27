"""The built images, as `scripts/test_image.sh` laid them out."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from opencode_mcp.cli.scripted_model import Json

REPOSITORY = Path(__file__).parents[2]
_PLACE = REPOSITORY / ".cache" / "image"


@dataclass(frozen=True, slots=True)
class Image:
    """One target: its files, and what it says of itself."""

    target: str
    root: Path
    inspected: Json

    @classmethod
    def of(cls, target: str) -> Image:
        """Read what the script left."""
        inspected = json.loads((_PLACE / f"{target}.json").read_text(encoding="utf-8"))
        return cls(target, (_PLACE / target).resolve(strict=True), inspected)

    @property
    def config(self) -> Json:
        """What an engine reads: user, entry point, environment and so on."""
        return cast("Json", self.inspected["Docker"]["config"])

    @property
    def history(self) -> list[Json]:
        """How it came to be, the base's part included."""
        return cast("list[Json]", self.inspected["Docker"]["history"])

    @property
    def environment(self) -> dict[str, str]:
        """The variables that every container of it gets."""
        return dict(entry.split("=", 1) for entry in self.config["Env"])

    @property
    def layer_bytes(self) -> list[int]:
        """The size of each layer, unpacked, from the base's first one on."""
        listing = (_PLACE / f"{self.target}.layers").read_text(encoding="utf-8")
        sizes = {
            match[2]: int(match[1])
            for match in re.finditer(r"^-\S+ \S+ +(\d+) .* (\w+\.tar)$", listing, re.MULTILINE)
        }
        manifest = json.loads((_PLACE / f"{self.target}.manifest").read_text(encoding="utf-8"))
        return [sizes[layer] for layer in manifest[0]["Layers"]]

    def path(self, inside: str) -> Path:
        """Return where a path of the image is for us."""
        return self.root / inside.lstrip("/")

    def fresh_volume(self, place: Path) -> Path:
        """Make what a new volume at /data begins as: the image's folder, with owners and modes."""
        shutil.copytree(self.path("/data"), place, symlinks=True)
        for copied in (place, *place.rglob("*")):
            found = self.path("/data").joinpath(copied.relative_to(place)).stat()
            shutil.chown(copied, found.st_uid, found.st_gid)
            copied.chmod(found.st_mode & 0o7777)
        return place

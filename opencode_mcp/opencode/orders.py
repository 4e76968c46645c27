"""What a supervisor is told to do. It comes through its stdin: argv is for all to read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Orders:
    """Start this OpenCode as that instance.

    `binary` is resolved, `env` is OpenCode's complete environment but for user name and password,
    which the supervisor makes up. `folder`: see instance_file.
    """

    folder: Path
    instance_id: str
    settings_key: str
    binary: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    startup_timeout_s: float

    def to_json(self) -> bytes:
        """Write them down for `from_json`."""
        fields = asdict(self) | {"folder": str(self.folder), "env": dict(self.env)}
        return json.dumps(fields).encode()

    @classmethod
    def from_json(cls, content: bytes) -> Orders:
        """Read what `to_json` wrote."""
        fields = json.loads(content)
        return cls(**{**fields, "folder": Path(fields["folder"]), "args": tuple(fields["args"])})

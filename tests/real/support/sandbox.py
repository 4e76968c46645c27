"""A home of its own for an OpenCode: no file, setting or login of the developer leaks in or out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from opencode_mcp.cli.scripted_model import opencode_config
from tests.support.bridges import bare_env

if TYPE_CHECKING:
    from opencode_mcp.cli.scripted_model import Json

REPOSITORY = Path(__file__).parents[3]
_CACHED_BINARY = REPOSITORY / ".cache" / "opencode" / "node_modules" / ".bin" / "opencode"


def opencode_binary() -> Path:
    """Return the pinned OpenCode. Without one the tests fail; they are never skipped."""
    named = os.environ.get("OPENCODE_MCP_TEST_OPENCODE")
    binary = Path(named) if named else _CACHED_BINARY
    if not os.access(binary, os.X_OK):
        message = (
            f"no OpenCode at {binary}: run `make setup`, or name one in OPENCODE_MCP_TEST_OPENCODE"
        )
        raise FileNotFoundError(message)
    return binary.absolute()


class Sandbox:
    """HOME and XDG folders under one path, with an `opencode.json` for the scripted model."""

    def __init__(self, path: Path, model_url: str) -> None:
        self.home = path
        config = path / ".config" / "opencode"
        config.mkdir(parents=True)
        (config / "opencode.json").write_text(
            json.dumps(opencode_config(model_url)), encoding="utf-8"
        )
        self._models = path / "models.json"
        self._models.write_text("{}", encoding="utf-8")

    def env(self) -> dict[str, str]:
        """Return the complete environment of a process that lives here.

        The catalogue of providers that nobody is logged in to is empty: OpenCode reads its own once
        a start and once a folder, which is half of what these tests cost.
        """
        return bare_env(self.home) | {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_SHARE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_MODELS_PATH": str(self._models),
        }


def write_project(folder: Path, settings: Json | None = None) -> Path:
    """Make a project folder, with an `opencode.json` of its own where settings are given."""
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("A project for a test.\n", encoding="utf-8")
    if settings is not None:
        (folder / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder.resolve()

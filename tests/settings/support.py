"""Load settings from a plain mapping, or tell why they were refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opencode_mcp.errors import ConfigError
from opencode_mcp.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

URL = "https://opencode.example.org"


def load(project: Path, environ: Mapping[str, str] | None = None, **overrides: object) -> Settings:
    """Load settings as a process started in `project` would, with these options."""
    return load_settings(environ or {}, overrides=overrides, cwd=project)


def faults(project: Path, environ: Mapping[str, str], **overrides: object) -> list[str]:
    """Return the faults that stop a start, one a line."""
    with pytest.raises(ConfigError) as refused:
        load(project, environ, **overrides)
    return str(refused.value).splitlines()[1:]

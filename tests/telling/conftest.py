"""Fixtures: as for turns; the log of this process as a list; a day in the life of a server."""

from __future__ import annotations

import io
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.log_events import CONTENT_LOGGER
from opencode_mcp.logs import configure_logging
from tests.ends.conftest import soon
from tests.telling.lines import Log
from tests.turns.conftest import bridge, bridges, nothing_left, project, twin

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bridge", "bridges", "log", "nothing_left", "project", "soon", "twin"]

_LOGGERS = ("", "opencode_mcp", CONTENT_LOGGER, "fastmcp", "mcp", "uvicorn", "uvicorn.access")


@dataclass
class _Settings:
    level: int
    handlers: list[logging.Handler]
    propagate: bool
    disabled: bool


@pytest.fixture
def log() -> Iterator[Log]:
    """Log as the server does, at debug; what was set before is set again afterwards."""
    before = {name: _settings(logging.getLogger(name)) for name in _LOGGERS}
    stream = io.StringIO()
    configure_logging("debug", "json", stream=stream)
    yield Log(stream)
    logging.captureWarnings(capture=False)
    for name, was in before.items():
        logger = logging.getLogger(name)
        logger.setLevel(was.level)
        logger.handlers[:] = was.handlers
        logger.propagate, logger.disabled = was.propagate, was.disabled


def _settings(logger: logging.Logger) -> _Settings:
    return _Settings(logger.level, logger.handlers[:], logger.propagate, logger.disabled)

"""Log lines as a program reads them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opencode_mcp.logs import configure_logging

if TYPE_CHECKING:
    import io

#: the ids that tell what a line is for
CALL_IDS = frozenset({"tool", "call_id"})


class Log:
    """The log of this process."""

    def __init__(self, stream: io.StringIO) -> None:
        self._stream = stream

    def with_content(self) -> None:
        """From here on as with `LOG_CONTENT=true`."""
        configure_logging("debug", "json", content=True, stream=self._stream)

    @property
    def text(self) -> str:
        """All of it."""
        return self._stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Every line of ours; a line that is no JSON object fails the test."""
        return our_lines(self.text)

    def of(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of one event."""
        return [line for line in self.lines if line["event"] == event]

    def events(self) -> set[str]:
        """Return which events there were."""
        return {line["event"] for line in self.lines}


def our_lines(text: str) -> list[dict[str, Any]]:
    """Return the lines of ours, each of which must be an event."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    ours = [line for line in lines if line["logger"].startswith("opencode_mcp")]
    assert all("event" in line for line in ours), "a line that is no event"
    return ours

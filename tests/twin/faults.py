"""What can go wrong between a client and the twin, planned by the test.

A fault and the requests it hits make a plan: `twin.fail(Status(503), method="POST",
path=r"/abort$", nth=2)`. Each fault says whether the request has its effect.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.twin.shapes import Json

STREAM = re.compile(r"/event$")


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that arrived; `number` counts from 1, `body` is None where there was no JSON."""

    number: int
    method: str
    path: str
    query: Mapping[str, str]
    body: Json | None

    @property
    def line(self) -> str:
        """Method and path, for assertions on what was sent."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Reset:
    """Break the connection instead of answering; with `after`, once the effect is there."""

    after: bool = False


@dataclass(frozen=True, slots=True)
class Hang:
    """Do not answer until `Planned.release`; without `after`, do nothing until then either."""

    after: bool = False


@dataclass(frozen=True, slots=True)
class Status:
    """Answer with this status and an error of OpenCode's; `retry_after` is a header's text."""

    code: int
    retry_after: str | None = None
    after: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """Do what is asked and answer 200 with this instead."""

    content: bytes = b"this is not JSON"
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Truncate:
    """Do what is asked, send half of the answer's body and break the connection."""


@dataclass(frozen=True, slots=True)
class Drip:
    """Do what is asked and send the answer byte by byte, `pause_s` apart."""

    pause_s: float = 0.05


@dataclass(frozen=True, slots=True)
class DropStreams:
    """End every event stream, then answer as usual."""


@dataclass(frozen=True, slots=True)
class Silence:
    """For an event stream: accept it and say nothing, not even a heartbeat."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer as usual, then refuse every new connection until `Twin.listen`."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Lose all memory: kill what runs, break every connection, and come back at once.

    With `after`, the request has its effect first. It gets no answer in any case.
    """

    after: bool = False


Fault: TypeAlias = (
    Reset | Hang | Status | Body | Truncate | Drip | DropStreams | Silence | Refuse | Restart
)


def acts_first(fault: Fault) -> bool:
    """Whether the request has its effect before the fault shows."""
    match fault:
        case Reset(after) | Hang(after) | Status(_, _, after) | Restart(after):
            return after
        case Silence():
            return False
        case _:
            return True


@dataclass(slots=True)
class Planned:
    """A fault and the requests it hits: made by `Twin.fail`."""

    fault: Fault
    method: str | None
    path: re.Pattern[str] | None
    first: int
    times: int | None
    #: the requests that it hit
    hits: list[Seen] = field(default_factory=list)
    #: set at the first hit
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    #: lets a `Hang` go on
    released: asyncio.Event = field(default_factory=asyncio.Event)
    _matches: int = 0

    def release(self) -> None:
        """Hit nothing more, and let go of what hangs."""
        self.times = len(self.hits)
        self.released.set()

    def takes(self, seen: Seen) -> bool:
        """Count a request; whether the fault hits it."""
        if self.method not in {None, seen.method}:
            return False
        if self.path is None:  # the order of streams among other requests is chance
            if STREAM.search(seen.path):
                return False
        elif self.path.search(seen.path) is None:
            return False
        self._matches += 1
        has_more = self.times is None or len(self.hits) < self.times
        if self._matches < self.first or not has_more:
            return False
        self.hits.append(seen)
        self.reached.set()
        return True

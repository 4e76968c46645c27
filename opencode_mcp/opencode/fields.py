"""Kinds of fields in what OpenCode sends: unknown ones are ignored, and text is bounded.

OpenCode's milliseconds end here. A tool of a plugin puts what it likes into its part, so what is
read of that is taken only where it has the kind we know: it must never make a page unreadable.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

#: how much of a tool's output is kept: its end, which says how it came out
OUTPUT_CHARS = 2_000
#: how much of a title or a fault's text is kept: its beginning
TEXT_CHARS = 4_000


class FromOpencode(BaseModel):
    """Something that OpenCode sends."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


def _moment(value: object) -> object:
    """Turn OpenCode's milliseconds since 1970 into an aware UTC datetime."""
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000, UTC)
    return value


def _count(value: object) -> object:
    """Round a number: `/doc` calls counts of tokens numbers, not integers."""
    return round(value) if isinstance(value, float) else value


def _head(value: object) -> object:
    return value[:TEXT_CHARS] if isinstance(value, str) else None


def _tail(value: object) -> object:
    return value[-OUTPUT_CHARS:] if isinstance(value, str) else ""


def _digest(value: object) -> object:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


Moment = Annotated[datetime, BeforeValidator(_moment)]
Count = Annotated[int, BeforeValidator(_count)]
#: the beginning of a text; None where there is none
Head = Annotated[str | None, BeforeValidator(_head)]
#: the end of a text; empty where there is none
Tail = Annotated[str, BeforeValidator(_tail)]
#: stands for a value that is only ever compared, and may be as long as a file
Digest = Annotated[str, BeforeValidator(_digest)]

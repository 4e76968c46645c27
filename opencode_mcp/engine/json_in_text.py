"""Find the one JSON value that an answer means, in whatever a model wrote around it.

In this order, and the first that applies decides:

1. the whole text is JSON;
2. the last fenced block that is labelled `json`: if it is no JSON, there is none, since an earlier
   block would be a draft or an example;
3. the last other fenced block that is a JSON object or array;
4. the last object that stands in the text, outside of any other value; if there is none, the last
   array (`[1]` may be a reference in prose, so objects come first).

JSON is meant strictly (RFC 8259): no comments, no trailing commas, no NaN, no key twice, nothing
that cannot be written as UTF-8, no number beyond a double. Pure, and linear in the text.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: how deep objects and arrays may lie in each other: pydantic, which writes our results, refuses
#: more than some 250
MAX_DEPTH = 100
#: of an integer; Python itself refuses more than 4,300
_MAX_DIGITS = 1_000
_FENCES = ("```", "~~~")
#: where an object or an array may begin, with what may come first in it: prose has many brackets,
#: and each try costs a few microseconds
_OPENING = re.compile(r'\{(?=[ \t\n\r]*["}])|\[(?=[ \t\n\r]*["{\[\]0-9tfn-])')


class Lack(StrEnum):
    """Why no value can be taken from a text."""

    NO_JSON = "NO_JSON"  # nothing in it is, or was to be, JSON
    MALFORMED = "MALFORMED_JSON"  # what was to be JSON is not, or not strictly
    TOO_DEEP = "NESTED_TOO_DEEP"


@dataclass(frozen=True, slots=True)
class Found:
    """A value that stands in a text, and its compact JSON."""

    value: object
    json: str


def find_json(text: str) -> Found | Lack:
    """Return the value that `text` means, or why there is none."""
    reader = _Reader()
    whole = text.strip()
    reading = reader.read(_Text(whole), 0) if whole else None
    if reading is not None and reading.is_complete and reading.end == len(whole):
        return _taken(reading)
    blocks = list(_fenced(text))
    labelled = [content for label, content in blocks if label == "json"]
    if labelled:
        reading = reader.read_block(labelled[-1])
        return Lack.MALFORMED if reading is None else _taken(reading)
    for _, content in reversed(blocks):
        reading = reader.read_block(content)
        if reading is not None and isinstance(reading.value, dict | list):
            return _taken(reading)
    reading = reader.read_last(_Text(text))
    if reading is not None:
        return _taken(reading)
    return Lack.MALFORMED if whole.startswith(("{", "[")) else Lack.NO_JSON


class _Text(str):
    """A text in which a decoder's error does not count lines.

    `JSONDecodeError` counts those before the fault: of thousands of tries in one long text each
    would read it all. Nobody reads these errors.
    """

    __slots__ = ()

    def count(self, *_: object) -> int:
        return 0

    def rfind(self, *_: object) -> int:
        return -1


@dataclass(slots=True)
class _Reading:
    """What was read from some place on. `end`: where to go on."""

    end: int
    value: object = None
    is_complete: bool = False
    #: it has a key twice, or a number that is none
    is_strict: bool = True


class _Reader:
    """Reads values, strictly. One for each text: making a decoder takes longer than a short try."""

    def __init__(self) -> None:
        self._is_strict = True
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._pairs,
            parse_constant=self._refuse,
            parse_int=self._integer,
            parse_float=self._number,
        )

    def read(self, text: _Text, start: int) -> _Reading:
        """Read the value that begins at `start`.

        If none does, `end` is where it ceased to be JSON. What lies before that is part of
        something broken and no value of its own; nor is it read twice.
        """
        self._is_strict = True
        try:
            value, end = self._decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            return _Reading(max(error.pos, start + 1))
        except RecursionError:  # deeper than any value we take; there is no telling where it ends
            return _Reading(len(text))
        return _Reading(end, value, is_complete=True, is_strict=self._is_strict)

    def read_block(self, content: str) -> _Reading | None:
        """Read the one value of a fenced block; None: it is not just one value.

        A model may close a block on the value's own line, which Markdown does not count as its end.
        """
        stripped = _Text(content.strip())
        if not stripped:
            return None
        reading = self.read(stripped, 0)
        rest = stripped[reading.end :].lstrip()
        is_one = reading.is_complete and (not rest or rest.startswith(_FENCES))
        return reading if is_one else None

    def read_last(self, text: _Text) -> _Reading | None:
        """Read the last object of a text, or else its last array; None: it has neither."""
        last: dict[type, _Reading] = {}
        at = 0
        while (opening := _OPENING.search(text, at)) is not None:
            reading = self.read(text, opening.start())
            at = reading.end
            if reading.is_complete:
                last[type(reading.value)] = reading
        return last.get(dict) or last.get(list)

    def _refuse(self, _: object) -> object:
        self._is_strict = False
        return None

    def _pairs(self, items: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(items)
        if len(made) < len(items):
            self._is_strict = False
        return made

    def _integer(self, digits: str) -> object:
        return int(digits) if len(digits) <= _MAX_DIGITS else self._refuse(digits)

    def _number(self, digits: str) -> object:
        value = float(digits)
        return value if math.isfinite(value) else self._refuse(digits)


def _taken(reading: _Reading) -> Found | Lack:
    """Return the value for good, if it is one that can be passed on."""
    if not reading.is_strict:
        return Lack.MALFORMED
    if is_deeper(reading.value, MAX_DEPTH):
        return Lack.TOO_DEEP
    text = to_json(reading.value)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return Lack.MALFORMED
    return Found(reading.value, text)


def to_json(value: object) -> str:
    """Return compact JSON. Raises ValueError for a number that is none."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def is_deeper(value: object, depth: int) -> bool:
    """Whether objects and arrays lie more than `depth` deep in each other."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


def _fenced(text: str) -> Iterator[tuple[str, str]]:
    """Yield label and content of each fenced block; one that is not closed goes to the end.

    Lines end with a line feed and with nothing else: a JSON string may hold U+2028 as it is.
    """
    fence = label = ""
    lines: list[str] = []
    for line in text.split("\n"):
        stripped = line.strip()
        mark = stripped[:3] if stripped.startswith(_FENCES) else ""
        run = len(stripped) - len(stripped.lstrip(mark[0])) if mark else 0
        info = stripped[run:].strip()
        if not fence:
            if mark and not (mark[0] == "`" and "`" in info):
                fence, label, lines = mark[0] * run, (info.split() or [""])[0].lower(), []
        elif mark and mark[0] == fence[0] and run >= len(fence) and not info:
            yield label, "\n".join(lines)
            fence = ""
        else:
            lines.append(line)
    if fence:
        yield label, "\n".join(lines)

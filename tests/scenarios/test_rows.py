"""Each row of the facts has a scenario, or a reason why not."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.scenarios.rows import EXCEPTIONS, PARTS, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = re.compile(r"test_(\d+)_(\d+)_")


def _played() -> Iterator[str]:
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        module = importlib.import_module(f"tests.scenarios.{file.stem}")
        for name, test in inspect.getmembers(module, inspect.isfunction):
            if found := _NAME.match(name):
                yield f"{found[1]}.{found[2]}"
            for mark in getattr(test, "pytestmark", ()):
                if mark.name == "rows":
                    yield from mark.args


def test_every_row_has_a_scenario_or_a_reason() -> None:
    played = set(_played())

    assert rows() - played == set(EXCEPTIONS)
    assert set(PARTS) <= played

"""Faults that people met in servers of this kind, and that each of them has a test here.

A test says which of them it holds in its docstring ("Case B31", "Cases 24 and B13"); the docstring
of a module speaks for all of its tests. So a case whose last test goes away is noticed.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REPO = Path(__file__).resolve().parent.parent
#: where tests are; one that does not exist yet has none
FOLDERS = ("tests", "tests_image", "tests_clients")

CASES = {
    "B01": "a stop leaves the shell command running",
    "B03": "an abort of an idle session is taken for a stop",
    "B05": "a cancelled call hangs, is answered twice, or takes the server down",
    "B07": "busy although the answer is there",
    "B09": "the status of another folder is not seen",
    "B11": "an unknown model fails without a word",
    "B13": "nobody can answer what the agent asks",
    "B15": "one prompt is sent several times",
    "B17": "a start in the background waits for the end",
    "B19": "a follow-up prompt is lost, and success reported",
    "B21": "a second OpenCode is started beside the user's",
    "B23": "an event stream that never speaks holds up the answer",
    "B25": "no id in the answer, so nobody can go on",
    "B27": "a client shows only one half of the answer",
    "B29": "sessions are forgotten at a restart",
    "B31": "a client gives up because it hears nothing",
    "B33": "a container outlives its client",
    "B35": "HTTP clients are lost after a restart",
    "B37": "several processes cannot start on one new database",
    "B39": "a database folder that cannot be written",
    "B41": "421 behind a proxy, and nobody knows why",
    "22": "a provider that is retried looks like one that works",
    "23": "a prompt is accepted and never runs",
    "24": "an answer to an ask that is gone is called granted",
    "25": "a person is asked at a client that cannot ask",
    "26": "a missing password is not named",
    "27": "another generation of OpenCode is waited for in vain",
    "28": "a session is deleted under its running tool",
    "29": "an archive is taken for something that can be undone",
    "30": "a large answer is cut for good, or its pages leave gaps",
    "31": "something that is no message on stdout",
    "32": "a proxy holds back what is streamed",
    "33": "a missing or wrong token is not told as such",
    "34": "an open stream holds up the exit",
    "35": "health needs a token, or tells too much",
    "36": "a write finds the database locked",
    "37": "a database of a newer release is changed",
    "38": "a damaged database is replaced in silence",
    "39": "a folder outside of the roots gets in",
    "40": "everybody in the network may use it",
    "41": "each folder that was ever used costs memory for good",
    "42": "a cancelled turn is told as failed or done",
    "43": "what a turn changed is not told",
    "44": "an id leads to another route or session",
    "45": "an end in an outage hangs, or is forgotten",
    "46": "a delete is sent before the abort was answered",
    "47": "a dead OpenCode is replaced, and its sessions called ended",
}
#: without a test, and why
UNTESTED: dict[str, str] = {}

_LABEL = re.compile(r"\b[Cc]ases? (B?\d\d(?:(?:, | and )B?\d\d)*)\b")


def labels(text: str) -> set[str]:
    """Return the cases that a docstring names."""
    return {name for found in _LABEL.findall(text) for name in re.findall(r"B?\d\d", found)}


def _documented(tree: ast.Module) -> Iterator[str]:
    """Give the docstrings that speak for a test: each test's own, and that of their module."""
    tests = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    ]
    for node in [*tests, *([tree] if tests else [])]:
        yield ast.get_docstring(node) or ""


@pytest.fixture(scope="module")
def tested() -> Counter[str]:
    """How many docstrings name each case."""
    found: Counter[str] = Counter()
    for folder in FOLDERS:
        for file in (REPO / folder).rglob("test_*.py"):
            if file != Path(__file__):
                for text in _documented(ast.parse(file.read_text(encoding="utf-8"))):
                    found.update(labels(text))
    return found


def test_each_case_has_a_test(tested: Counter[str]) -> None:
    assert [name for name in CASES if not tested[name]] == []


def test_no_test_names_a_case_that_is_none(tested: Counter[str]) -> None:
    assert tested.keys() - CASES.keys() == set(), "and what is tested is not in UNTESTED"


def test_a_case_is_in_one_of_the_tables() -> None:
    assert CASES.keys() & UNTESTED.keys() == set()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Case B31; the interval is short.", {"B31"}),
        ("Cases B25 and 27: some clients.", {"B25", "27"}),
        ("Ours. Cases 24, B13 and 45.", {"24", "B13", "45"}),
        ("Case 42 and facts 4.7: either way.", {"42"}),
        ("In case of 3 failures; the case B123 is none.", set()),
    ],
)
def test_a_label_is_read_as_it_is_meant(text: str, named: set[str]) -> None:
    assert labels(text) == named

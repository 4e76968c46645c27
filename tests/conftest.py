"""For every test: nothing of the developer's shell or home leaks in, and skips can be refused."""

from __future__ import annotations

import gc
import json
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

import hypothesis
import pytest
from jsonschema import Draft202012Validator

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

pytest_plugins = ["tests.worker"]

# How long an example takes says nothing on a machine that has other work.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")

#: where the real OpenCode is; set by `make test`
TEST_OPENCODE = "OPENCODE_MCP_TEST_OPENCODE"
_PERSONAL_FOLDERS = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="a skipped test is a failed test")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, or one worker is left with it while the others are done."""
    items.sort(key=lambda item: "ends/test_faults" not in item.nodeid)


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is collected: forget the shell's settings, and the user's own folders."""
    for name in [*os.environ]:
        if name.startswith("OPENCODE_") and name != TEST_OPENCODE:
            del os.environ[name]
    os.environ.pop("CLAUDE_PROJECT_DIR", None)
    folders = tempfile.mkdtemp(prefix="opencode-mcp-test-")
    config.stash[_PERSONAL_FOLDERS] = folders
    for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
        os.environ[f"XDG_{kind}_HOME"] = f"{folders}/{kind.lower()}"


def pytest_collection_finish() -> None:
    """Let the garbage collector never look again at what was imported and collected."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[_PERSONAL_FOLDERS], ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _schemas_are_checked_once() -> Iterator[None]:
    """Check a schema against that of its dialect once a process.

    MCP's client does so for each tool of each connection, which was a third of what the tests of
    the whole server cost. What it does with the answers stays as it is.
    """
    check = Draft202012Validator.check_schema
    good: set[str] = set()

    def once(schema: Mapping[str, object]) -> None:
        text = json.dumps(schema)
        if text not in good:
            check(schema)
            good.add(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draft202012Validator, "check_schema", staticmethod(once))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.config.getoption("--no-skips"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and --no-skips was given: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped and collector.config.getoption("--no-skips"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and --no-skips was given: {report.longrepr}"
    return report

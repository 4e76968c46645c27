"""The MCP conformance suite's server scenarios, against our HTTP server with what they ask for.

They test the protocol, not our tools: what our server makes of FastMCP (stateless, its gate, its
middleware, the sealed state of repeated calls) must not break it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from opencode_mcp.callers.server import build_server
from tests.real.support.opencode_server import free_port
from tests.support.bridges import bare_env
from tests.support.http_bridge import open_http
from tests_clients.support.conformance import offer
from tests_clients.support.home import ClientHome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from fastmcp import FastMCP

    from opencode_mcp.callers.service import Service
    from tests.support.http_bridge import HttpServer

_NOBODY_TO_ASK = "stateless: over handshake-era HTTP a server cannot ask its client (docs/http.md)"
_NO_COMPLETION = "there is nothing to complete: our server offers no prompts and no resources"
_NO_SUBSCRIPTION = "there are no resources to subscribe to, and no connection to notify"
_NO_RESUMING = "stateless: a stream is not resumed; the turn goes on, and opencode-status tells"

#: what does not apply to our server, and why
NOT_OURS = {
    "2025-11-25": {
        "completion-complete": _NO_COMPLETION,
        "tools-call-sampling": _NOBODY_TO_ASK,
        "tools-call-elicitation": _NOBODY_TO_ASK,
        "elicitation-sep1034-defaults": _NOBODY_TO_ASK,
        "elicitation-sep1330-enums": _NOBODY_TO_ASK,
        "server-sse-polling": _NO_RESUMING,
        "resources-subscribe": _NO_SUBSCRIPTION,
        "resources-unsubscribe": _NO_SUBSCRIPTION,
    },
    "2026-07-28": {"completion-complete": _NO_COMPLETION},
}
#: scenarios of extensions that our server does not declare
_EXTENSION = re.compile(r"^  - (\S+) \[extension\]$", re.MULTILINE)


@pytest.fixture
def nowhere(tmp_path: Path) -> ClientHome:
    """A home for the suite; there is no OpenCode."""
    (tmp_path / "project").mkdir()
    return ClientHome(tmp_path / "home", tmp_path / "project")


@pytest_asyncio.fixture(loop_scope="session")
async def everything(
    nowhere: ClientHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[HttpServer]:
    """Our server over HTTP, in this process, with the suite's tools, resources and prompts."""

    def build(service: Service) -> FastMCP:
        return offer(build_server(service))

    monkeypatch.setattr("opencode_mcp.app.http.build_server", build)
    port = str(free_port())
    settings = {
        "PORT": port,
        "ALLOWED_ORIGINS": f"http://127.0.0.1:{port}",  # the suite acts as a page of this origin
        "SERVER_URL": "http://127.0.0.1:9",  # nobody is there, and nobody is asked
        "DATABASE": str(tmp_path / "tracking.db"),
        "DEFAULT_CWD": str(nowhere.project),
    }
    env = {f"OPENCODE_MCP_{name}": value for name, value in settings.items()}
    async with open_http(bare_env(tmp_path) | env, tmp_path) as server:
        yield server


# the suite still tests what this version of the protocol gives up
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("version", NOT_OURS)
async def test_every_scenario_that_applies_passes(
    nowhere: ClientHome, everything: HttpServer, version: str
) -> None:
    results = nowhere.path / "results"
    where = ("--url", everything.url, "--output-dir", str(results))
    await nowhere.run("conformance", "server", *where, "--suite", "all", "--spec-version", version)
    failed: dict[str, list[str]] = {}
    scenarios = set()
    for file in results.glob("server-*/checks.json"):
        scenario = re.sub(r"^server-(.*)-\d{4}-.*$", r"\1", file.parent.name)
        scenarios.add(scenario)
        checks = json.loads(file.read_text(encoding="utf-8"))
        wrong = [f"{c['id']}: {c.get('errorMessage')}" for c in checks if c["status"] == "FAILURE"]
        if wrong:
            failed[scenario] = wrong

    assert failed.keys() == NOT_OURS[version].keys(), failed
    assert scenarios == await _offered(nowhere, version)


async def _offered(home: ClientHome, version: str) -> set[str]:
    """Return the scenarios that the suite has for a version of the protocol."""
    listed = (await home.run("conformance", "list", "--server")).out
    lines = re.findall(r"^  - (\S+) \[(.*)\]$", listed, re.MULTILINE)
    return {name for name, versions in lines if version in versions.split(",")}


async def test_the_scenarios_that_are_left_out_are_of_tasks_and_skills(nowhere: ClientHome) -> None:
    """Extensions of the protocol that our server does not declare."""
    listed = (await nowhere.run("conformance", "list", "--server")).out
    extensions = _EXTENSION.findall(listed)

    assert extensions
    assert all(name.startswith(("tasks-", "sep-2640-skills-")) for name in extensions)

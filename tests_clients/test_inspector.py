"""MCP Inspector's command line: over stdio in the handshake era, over HTTP in both eras."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests_clients.conftest import TOKEN
from tests_clients.support.cases import Known, cases
from tests_clients.support.inspector import (
    TOOL_ERROR,
    Era,
    Inspector,
    over_http,
    over_stdio,
    result,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.http_bridge import HttpProcess
    from tests_clients.support.home import ClientHome

ERAS: tuple[Era, ...] = ("legacy", "modern")


async def every_tool_once(inspector: Inspector, project: Path, asking: Path) -> None:
    """Call the tools as the table says, each from a process of its own."""
    listed = await inspector.tools()
    known: Known = {}
    table = cases(project, asking)
    for case in table:
        done = await inspector.call(case.tool, case.arguments(known))
        assert done.code == 0, f"{case.tool}: {done.out}\n{done.err[-3000:]}"
        case.learn(result(done)["structuredContent"], known)

    assert {case.tool for case in table} == set(listed)


async def test_every_tool_works_once_over_stdio(
    home: ClientHome, project: Path, asking: Path
) -> None:
    """Each call is a server process of its own: the next one goes on with its turns."""
    home.set("on_exit", "keep")
    home.set("codex_tools", value=True)
    await every_tool_once(over_stdio(home, "legacy"), project, asking)


@pytest.mark.parametrize("era", ERAS)
async def test_every_tool_works_once_over_http(
    home: ClientHome, served: HttpProcess, project: Path, asking: Path, era: Era
) -> None:
    await every_tool_once(over_http(home, era, served.url, TOKEN), project, asking)


async def test_every_tool_names_an_argument_that_it_does_not_have(
    home: ClientHome, served: HttpProcess
) -> None:
    inspector = over_http(home, "legacy", served.url, TOKEN)
    for tool in await inspector.tools():
        done = await inspector.call(tool, {"bogus": 1})
        assert done.code == TOOL_ERROR, done.out
        assert "bogus: is unknown" in result(done)["content"][0]["text"]


async def test_errors_come_as_results_that_a_model_can_read(
    home: ClientHome, served: HttpProcess
) -> None:
    await _errors_are_results(over_http(home, "modern", served.url, TOKEN))


async def test_over_stdio_too(home: ClientHome) -> None:
    await _errors_are_results(over_stdio(home, "legacy"))


async def _errors_are_results(inspector: Inspector) -> None:
    unknown = await inspector.call("opencode-status", {"sessionId": "ses_nobody"})
    nothing = await inspector.call("opencode-everything", {})

    assert unknown.code == TOOL_ERROR
    assert result(unknown)["structuredContent"]["error"]["name"] == "SESSION_NOT_FOUND"
    assert nothing.code != 0
    assert "opencode-everything" in nothing.out + nothing.err


async def test_a_wrong_token_gets_nothing(home: ClientHome, served: HttpProcess) -> None:
    inspector = over_http(home, "legacy", served.url, "a-token-of-nobody")
    done = await inspector.request("tools/list", "--stored-auth-only")

    assert done.code != 0
    assert "opencode-reply" not in done.out

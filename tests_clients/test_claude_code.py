"""Claude Code, headless: what its (scripted) model can do with our tools, and is shown of them."""

from __future__ import annotations

import json
import re
import signal
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.callers.tool_table import NAMES
from tests_clients.support import claude
from tests_clients.support.home import recipe
from tests_clients.support.looking import first_session, quiet
from tests_clients.support.scripted_api import ScriptedApi
from tests_clients.support.scripts import (
    approve,
    ask_the_person,
    cut_short,
    delegate,
    endless,
    fail,
    say,
    wait_for_it,
    watch,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.witness import Witness
    from tests_clients.support.home import ClientHome

STDIO = recipe("claude-code/stdio.json")


async def test_a_model_delegates_goes_on_and_ends_over_stdio(
    home: ClientHome, witness: Witness
) -> None:
    async with ScriptedApi(delegate()) as api:
        done = await claude.run(home, api, STDIO)

    session_id, status = claude.last_words(done).split()
    assert status == "ended"
    assert await witness.session(session_id) is None
    assert claude.servers(done) == {"opencode": "connected"}


async def test_a_model_delegates_to_an_opencode_that_is_started_for_it(
    bare_home: ClientHome,
) -> None:
    """The five-minute path: nothing is set; agents work in the folder that Claude Code runs in."""
    async with ScriptedApi(delegate()) as api:
        done = await claude.run(bare_home, api, STDIO)

    assert claude.last_words(done).endswith(" ended")
    assert api.shown[0].json["directory"] == str(bare_home.project)


async def test_the_readmes_command_adds_a_server_that_is_reached(bare_home: ClientHome) -> None:
    added = await bare_home.run("claude", "mcp", "add", "opencode", "--", "opencode-mcp")
    listed = await bare_home.run("claude", "mcp", "list")

    assert added.code == 0, added.err
    assert "opencode: opencode-mcp" in listed.out
    assert "Connected" in listed.out


async def test_the_model_has_every_tool_with_its_whole_text_and_schema_at_once(
    home: ClientHome,
) -> None:
    async with ScriptedApi(say("nothing")) as api:
        await claude.run(home, api, STDIO)

    tools = claude.ours(api)
    assert set(tools) == set(NAMES)
    assert "opencode-end when you are done" in tools["opencode"]["description"]
    assert "approval-policy" in tools["opencode"]["input_schema"]["properties"]
    assert all(tool["input_schema"]["additionalProperties"] is False for tool in tools.values())


async def test_without_always_load_the_model_has_to_search_for_the_tools(home: ClientHome) -> None:
    """Claude Code: why the recipes say `alwaysLoad`."""
    servers = json.loads(STDIO.read_text(encoding="utf-8"))
    del servers["mcpServers"]["opencode"]["alwaysLoad"]
    config = home.write("mcp.json", json.dumps(servers))
    async with ScriptedApi(say("nothing")) as api:
        await claude.run(home, api, config)

    assert claude.ours(api) == {}
    assert "ToolSearch" in api.requests[0].tools


async def test_the_model_is_shown_all_of_a_success_and_of_an_error(home: ClientHome) -> None:
    """Claude Code: of a success the structured half, of an error the text. Each is complete."""
    async with ScriptedApi(fail()) as api:
        await claude.run(home, api, STDIO)

    argument, unknown, failed = api.shown
    assert argument.is_error
    assert "INVALID_ARGUMENT: bogus" in argument.text
    assert unknown.is_error
    assert "SESSION_NOT_FOUND" in unknown.text
    assert failed.is_error
    assert "401" in failed.text
    assert re.search(r"ses_\w+", failed.text), "the session can be ended"
    assert "opencode-end" in failed.text


async def test_a_turn_that_outlasts_its_call_is_waited_for(home: ClientHome) -> None:
    async with ScriptedApi(wait_for_it("SLOW:30")) as api:
        done = await claude.run(home, api, STDIO)

    assert claude.last_words(done).endswith(" completed")


async def test_progress_keeps_a_long_call_alive(home: ClientHome) -> None:
    """Claude Code drops a call that it hears nothing of; here after 15 s instead of 30 min."""
    async with ScriptedApi(watch("SLOW:250,10")) as api:
        done = await claude.run(home, api, STDIO, CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT="15000")

    assert claude.last_words(done).endswith(" completed")


async def test_a_call_that_the_client_gives_up_is_cancelled_and_its_session_found(
    home: ClientHome, witness: Witness
) -> None:
    async with ScriptedApi(cut_short()) as api:
        done = await claude.run(home, api, STDIO, **claude.IMPATIENT)

    session_id, status = claude.last_words(done).split()
    assert status == "cancelled"
    assert "timed out" in api.shown[0].text
    assert witness.streams(session_id) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
async def test_a_client_that_is_stopped_takes_its_turn_along(
    home: ClientHome, project: Path, witness: Witness, number: signal.Signals
) -> None:
    async with (
        ScriptedApi(endless()) as api,
        home.started(*claude.argv(STDIO), env=claude.env(api)) as process,
    ):
        session_id = await first_session(witness, project)
        process.send_signal(number)
        await process.wait()
        await quiet(witness, session_id)


async def test_the_model_answers_what_the_agent_asks(home: ClientHome, asking: Path) -> None:
    async with ScriptedApi(approve(asking)) as api:
        done = await claude.run(home, api, STDIO)

    assert claude.last_words(done).endswith(" completed")
    assert (asking / "approved").exists()


async def test_a_headless_client_has_no_person_and_what_is_asked_is_rejected(
    home: ClientHome, asking: Path
) -> None:
    """Claude Code answers an elicitation with `cancel` in `-p`."""
    async with ScriptedApi(ask_the_person(asking)) as api:
        done = await claude.run(home, api, STDIO)

    assert "APPROVAL_REJECTED" in claude.last_words(done)
    assert not (asking / "asked").exists()

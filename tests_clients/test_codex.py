"""Codex CLI, headless: what its (scripted) model can do with our tools, and is shown of them."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from opencode_mcp.callers.tool_table import NAMES
from tests_clients.support import codex
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

STDIO = recipe("codex/stdio.toml").read_text(encoding="utf-8")


async def test_a_model_delegates_goes_on_and_ends_over_stdio(
    home: ClientHome, witness: Witness
) -> None:
    async with ScriptedApi(delegate()) as api:
        done = await codex.run(home, api, STDIO)

    session_id, status = codex.last_words(done).split()
    assert status == "ended"
    assert await witness.session(session_id) is None


async def test_a_model_delegates_to_an_opencode_that_is_started_for_it(
    bare_home: ClientHome,
) -> None:
    """The five-minute path: nothing is set; agents work in the folder that Codex runs in."""
    async with ScriptedApi(delegate()) as api:
        done = await codex.run(bare_home, api, STDIO)

    assert codex.last_words(done).endswith(" ended")
    assert api.shown[0].json["directory"] == str(bare_home.project)


async def test_the_model_has_every_tool_with_its_whole_text_and_schema(home: ClientHome) -> None:
    """Codex gives tools names of its own: a namespace, and `_` for `-`."""
    async with ScriptedApi(say("nothing")) as api:
        await codex.run(home, api, STDIO)

    prefix = "mcp__opencode/"
    tools = {
        name.removeprefix(prefix): tool
        for name, tool in api.requests[0].tools.items()
        if name.startswith(prefix)
    }
    assert set(tools) == {name.replace("-", "_") for name in NAMES}
    assert "opencode-end when you are done" in tools["opencode"]["description"]
    assert "approval-policy" in tools["opencode"]["parameters"]["properties"]


async def test_the_model_is_shown_all_of_an_error(home: ClientHome) -> None:
    """Codex: the structured half, whatever it is."""
    async with ScriptedApi(fail()) as api:
        done = await codex.run(home, api, STDIO)

    argument, unknown, failed = (shown.json for shown in api.shown)
    assert argument["error"]["name"] == "INVALID_ARGUMENT"
    assert unknown["error"]["name"] == "SESSION_NOT_FOUND"
    assert failed["status"] == "failed"
    assert failed["error"]["statusCode"] == 401
    assert failed["sessionId"].startswith("ses_")
    assert [call["status"] for call in codex.calls(done)] == ["failed"] * 3


async def test_a_turn_that_outlasts_its_call_is_waited_for(home: ClientHome) -> None:
    async with ScriptedApi(wait_for_it("SLOW:30")) as api:
        done = await codex.run(home, api, STDIO)

    assert codex.last_words(done).endswith(" completed")


async def test_a_long_call_is_watched_to_its_end(home: ClientHome) -> None:
    async with ScriptedApi(watch("SLOW:120,10")) as api:
        done = await codex.run(home, api, STDIO)

    assert codex.last_words(done).endswith(" completed")


async def test_a_call_that_the_clients_own_limit_cuts_is_cancelled_and_its_session_found(
    home: ClientHome, witness: Witness
) -> None:
    """Codex counts the whole call, progress or not: why the recipes raise `tool_timeout_sec`."""
    async with ScriptedApi(cut_short()) as api:
        done = await codex.run(home, api, codex.impatient(STDIO))

    session_id, status = codex.last_words(done).split()
    assert status == "cancelled"
    assert "timed out" in api.shown[0].text
    assert witness.streams(session_id) == []


async def test_a_client_that_is_stopped_takes_its_turn_along(
    home: ClientHome, project: Path, witness: Witness
) -> None:
    async with ScriptedApi(endless()) as api:
        codex.configure(home, api, STDIO)
        async with home.started(*codex.ARGV, env=codex.ENV) as process:
            session_id = await first_session(witness, project)
            process.send_signal(signal.SIGTERM)
            await process.wait()
            await quiet(witness, session_id)


async def test_the_model_answers_what_the_agent_asks(home: ClientHome, asking: Path) -> None:
    async with ScriptedApi(approve(asking)) as api:
        done = await codex.run(home, api, STDIO)

    assert codex.last_words(done).endswith(" completed")
    assert (asking / "approved").exists()


async def test_a_headless_client_has_no_person_and_what_is_asked_is_rejected(
    home: ClientHome, asking: Path
) -> None:
    """Codex answers an elicitation with `decline` under its policy `never`."""
    async with ScriptedApi(ask_the_person(asking)) as api:
        done = await codex.run(home, api, STDIO)

    assert "APPROVAL_REJECTED" in codex.last_words(done)
    assert not (asking / "asked").exists()

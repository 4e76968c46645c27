"""Claude Code and Codex at a server that runs already: the recipes with a URL and a token.

One file, since the recipes name one port: xdist gives a file to one worker.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests_clients.conftest import TOKEN
from tests_clients.support import claude, codex
from tests_clients.support.home import recipe
from tests_clients.support.looking import first_session, quiet
from tests_clients.support.scripted_api import ScriptedApi
from tests_clients.support.scripts import cut_short, delegate, endless, say, watch

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.support.witness import Witness
    from tests_clients.support.home import ClientHome

pytestmark = pytest.mark.usefixtures("team")

CLAUDE = recipe("claude-code/http.json")
CODEX = recipe("codex/http.toml").read_text(encoding="utf-8")


async def test_claude_codes_model_delegates_goes_on_and_ends_with_a_token(
    home: ClientHome, witness: Witness
) -> None:
    """Case 33: a good token in a fixed header is all that it takes."""
    async with ScriptedApi(delegate()) as api:
        done = await claude.run(home, api, CLAUDE, OPENCODE_TOKEN=TOKEN)

    session_id, status = claude.last_words(done).split()
    assert status == "ended"
    assert await witness.session(session_id) is None


async def test_progress_keeps_a_long_call_of_claude_code_alive(
    home: ClientHome,
) -> None:
    """Claude Code drops an HTTP call that it hears nothing of; here after 15 s instead of 5 min."""
    async with ScriptedApi(watch("SLOW:450,10")) as api:
        limit = {"CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": "15000"}
        done = await claude.run(home, api, CLAUDE, OPENCODE_TOKEN=TOKEN, **limit)

    assert claude.last_words(done).endswith(" completed")


async def test_a_call_that_claude_code_gives_up_is_cancelled(
    home: ClientHome, witness: Witness
) -> None:
    async with ScriptedApi(cut_short()) as api:
        done = await claude.run(home, api, CLAUDE, OPENCODE_TOKEN=TOKEN, **claude.IMPATIENT)

    session_id, status = claude.last_words(done).split()
    assert status == "cancelled"
    assert witness.streams(session_id) == []


async def test_claude_code_that_is_stopped_takes_its_turn_along(
    home: ClientHome, project: Path, witness: Witness
) -> None:
    async with (
        ScriptedApi(endless()) as api,
        home.started(*claude.argv(CLAUDE), env=claude.env(api, OPENCODE_TOKEN=TOKEN)) as process,
    ):
        session_id = await first_session(witness, project)
        process.send_signal(signal.SIGTERM)
        await process.wait()
        await quiet(witness, session_id)


async def test_a_wrong_token_in_claude_code_gives_its_model_nothing(home: ClientHome) -> None:
    async with ScriptedApi(say("nothing")) as api:
        done = await claude.run(home, api, CLAUDE, OPENCODE_TOKEN="a-token-of-nobody")

    assert claude.servers(done)["opencode"] != "connected"
    assert claude.ours(api) == {}


async def test_codexs_model_delegates_goes_on_and_ends_with_a_token(
    home: ClientHome, witness: Witness
) -> None:
    async with ScriptedApi(delegate()) as api:
        done = await codex.run(home, api, CODEX, OPENCODE_TOKEN=TOKEN)

    session_id, status = codex.last_words(done).split()
    assert status == "ended"
    assert await witness.session(session_id) is None


async def test_a_call_that_codexs_own_limit_cuts_is_cancelled(
    home: ClientHome, witness: Witness
) -> None:
    async with ScriptedApi(cut_short()) as api:
        done = await codex.run(home, api, codex.impatient(CODEX), OPENCODE_TOKEN=TOKEN)

    session_id, status = codex.last_words(done).split()
    assert status == "cancelled"
    assert witness.streams(session_id) == []

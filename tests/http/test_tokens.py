"""Bearer tokens: who has none gets in nowhere, and nothing shows one."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from typing import TYPE_CHECKING

import pytest
from mcp.shared.exceptions import MCPError

from opencode_mcp.callers.tokens import Tokens
from tests.settings.support import URL, load

if TYPE_CHECKING:
    from pathlib import Path

    from opencode_mcp.settings import Settings
    from tests.support.bridges import Bridges

ALICE = "alices-token-0123456789"
BOB = "bobs-token-0123456789"
_PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


async def test_without_a_token_the_answer_tells_which_kind_is_wanted(bridges: Bridges) -> None:
    """Case 33."""
    server = await bridges.http(AUTH_TOKENS=f"alice:{ALICE}")
    reply = await server.post(_PING)
    assert reply.status == 401
    assert reply.headers["www-authenticate"] == 'Bearer realm="opencode-mcp"'


@pytest.mark.parametrize(
    "given",
    [f"Bearer {BOB}", "Bearer ", f"Bearer {ALICE}x", f"Bearer {ALICE[:-1]}", f"Basic {ALICE}"],
)
async def test_a_wrong_token_is_refused_and_nowhere_shown(
    bridges: Bridges, caplog: pytest.LogCaptureFixture, given: str
) -> None:
    """Case 33."""
    server = await bridges.http(AUTH_TOKENS=f"alice:{ALICE}")
    with caplog.at_level(logging.DEBUG):
        reply = await server.post(_PING, authorization=given)
    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith('Bearer realm="opencode-mcp", error=')
    secret = given.partition(" ")[2]
    logged = "".join(str(vars(line)) for line in caplog.records)
    assert not secret or secret not in reply.text + logged


async def test_the_right_token_is_let_in_whatever_the_case_of_its_scheme(
    bridges: Bridges,
) -> None:
    """Case 33."""
    server = await bridges.http(AUTH_TOKENS=f"alice:{ALICE},", ALLOW_SHARED_MANAGED="true")
    for scheme in ("Bearer", "bearer"):
        assert (await server.post(_PING, authorization=f"{scheme} {ALICE}")).status == 200


async def test_an_mcp_client_without_a_token_cannot_connect(bridges: Bridges) -> None:
    server = await bridges.http(AUTH_TOKENS=f"alice:{ALICE}")
    with pytest.raises((MCPError, RuntimeError)):
        await server.caller()
    assert (await (await server.caller(ALICE)).listed()) == {}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give a file with one token."""
    path = tmp_path / "tokens"
    _stamped(path, f"alice:{ALICE}\n", 1)
    return path


def _served_from(file: Path, project: Path, **more: str) -> Settings:
    env = {"TRANSPORT": "http", "AUTH_TOKENS_FILE": str(file), **more}
    return load(project, {f"OPENCODE_MCP_{name}": value for name, value in env.items()})


def _stamped(file: Path, text: str, moment: int) -> None:
    """Write a file with a time of its own: two writes may fall into one tick of the clock."""
    file.write_text(text, encoding="utf-8")
    os.utime(file, (moment, moment))


async def test_a_changed_file_counts_from_the_next_request_on(bridges: Bridges, file: Path) -> None:
    server = await bridges.http(AUTH_TOKENS_FILE=str(file))
    alice, bob = {"authorization": f"Bearer {ALICE}"}, {"authorization": f"Bearer {BOB}"}
    assert (await server.post(_PING, **alice)).status == 200
    assert (await server.post(_PING, **bob)).status == 401
    _stamped(file, f"bob:{BOB}\n", 2)
    assert (await server.post(_PING, **alice)).status == 401
    assert (await server.post(_PING, **bob)).status == 200


async def test_a_file_that_changes_while_the_server_starts_counts_as_it_is_then(
    project: Path, file: Path
) -> None:
    settings = _served_from(file, project)
    _stamped(file, f"bob:{BOB}\n", 2)
    tokens = Tokens(settings)
    assert await tokens.verify_token(ALICE) is None
    assert await tokens.verify_token(BOB) is not None


@pytest.mark.parametrize("wrong", [None, "", "bob", f"bob:{BOB}\nbob:{ALICE}\n"])
async def test_a_file_that_has_become_wrong_changes_nothing_and_is_complained_about(
    bridges: Bridges, file: Path, caplog: pytest.LogCaptureFixture, wrong: str | None
) -> None:
    server = await bridges.http(AUTH_TOKENS_FILE=str(file))
    if wrong is None:
        file.unlink()
    else:
        _stamped(file, wrong, 2)
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            assert (await server.post(_PING, authorization=f"Bearer {ALICE}")).status == 200
    (line,) = caplog.records
    assert "the former ones count" in line.message
    assert ALICE not in str(vars(line))
    assert BOB not in str(vars(line))


async def test_a_second_principal_in_the_file_needs_leave_to_share_a_managed_opencode(
    project: Path, file: Path
) -> None:
    managed = Tokens(_served_from(file, project))
    attached = Tokens(_served_from(file, project, SERVER_URL=URL))
    _stamped(file, f"alice:{ALICE}\nbob:{BOB}\n", 2)
    assert await managed.verify_token(BOB) is None
    assert await managed.verify_token(ALICE) is not None
    assert await attached.verify_token(BOB) is not None


async def test_no_token_is_in_the_log_nor_in_the_list_of_processes(bridges: Bridges) -> None:
    server = await bridges.http_process(
        AUTH_TOKENS=f"alice:{ALICE}", LOG_LEVEL="debug", LOG_CONTENT="true"
    )
    caller = await server.caller(ALICE)
    assert await caller.listed() == {}
    await server.post(_PING, authorization=f"Bearer {BOB}")
    log = server.log.read_text(encoding="utf-8")
    assert [json.loads(line)["message"] for line in log.splitlines()]
    assert ALICE not in log
    assert BOB not in log
    ps = await asyncio.create_subprocess_exec(
        "ps", "-o", "args=", "-p", str(server.process.pid), stdout=asyncio.subprocess.PIPE
    )
    assert ALICE.encode() not in (await ps.communicate())[0]

"""`doctor`: each line is what it is, and says what to do; nothing is left behind."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from opencode_mcp.app import check_opencode
from opencode_mcp.app.check_providers import check_models
from opencode_mcp.app.findings import Level
from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.settings import load_settings
from tests.cli.command import Command, Said, database
from tests.support.polling import PATIENCE_S, steadily
from tests.twin import Body, Hang

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bridges import Bridges
    from tests.twin import Twin

PASSWORD = "hunter2-hunter2-hunter2"


@pytest.fixture
def command(bridges: Bridges, project: Path) -> Command:
    """Give a doctor whose roots are one project folder."""
    return Command(
        bridges.attach_env(ALLOWED_ROOTS=str(project), DEFAULT_CWD=str(project))
    ).with_settings(CLEANUP_TIMEOUT_SECONDS="")


def levels(said: Said) -> dict[str, str]:
    """Return the worst level of each check."""
    order = ["skipped", "ok", "warning", "problem"]
    found: dict[str, str] = {}
    for one in said.json["checks"]:
        before = found.get(one["check"], "skipped")
        found[one["check"]] = max(before, one["level"], key=order.index)
    return found


def finding(said: Said, check: str) -> dict[str, Any]:
    """Return the one line of a check that is not ok."""
    (one,) = (one for one in said.json["checks"] if one["check"] == check and one["level"] != "ok")
    return dict(one)


async def test_all_is_well_on_a_fresh_machine(command: Command, twin: Twin) -> None:
    said = await command.run("doctor", "--json")
    assert said.code == 0, said.out
    assert levels(said) == {
        "settings": "ok",
        "database": "ok",
        "disk": "ok",
        "locks": "ok",
        "roots": "ok",
        "OpenCode": "ok",
        "password": "ok",
        "providers": "ok",
    }
    assert (said.json["ok"], said.json["problems"], said.json["warnings"]) == (True, 0, 0)
    assert not database(command).exists(), "the doctor made the database"
    assert all(line.startswith("GET") for line in twin.lines())


async def test_people_get_a_line_for_each_and_a_sum(command: Command, twin: Twin) -> None:
    said = await command.process("doctor")
    assert said.code == 0, said.out
    lines = said.out.splitlines()
    assert f"ok  OpenCode   1.18.33 at {twin.url}" in lines
    assert lines[-1] == "all is well"


async def test_no_output_holds_a_secret(command: Command, twin: Twin) -> None:
    secret = command.with_settings(SERVER_PASSWORD=PASSWORD)
    for arguments in (("doctor",), ("doctor", "--json")):
        said = await secret.run(*arguments)
        assert said.code == 1
        assert PASSWORD not in said.out + said.err
        assert twin.password not in said.out + said.err


async def test_a_wrong_password_is_a_problem(command: Command) -> None:
    said = await command.with_settings(SERVER_PASSWORD=PASSWORD).run("doctor", "--json")
    assert (said.code, levels(said)["OpenCode"]) == (1, "ok")
    assert "refuses the user name 'opencode' or its password" in finding(said, "password")["text"]
    assert levels(said)["providers"] == "skipped"


async def test_a_missing_password_is_a_problem(command: Command) -> None:
    said = await command.with_settings(SERVER_PASSWORD="").run("doctor", "--json")
    assert said.code == 1
    assert finding(said, "password")["text"] == "OpenCode wants one, and none is set"


async def test_an_opencode_without_a_password_is_a_warning(
    command: Command, twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(twin, "_is_authorized", lambda _: True)
    said = await command.run("doctor", "--json")
    assert (said.code, finding(said, "password")["level"]) == (0, "warning")


async def test_an_opencode_that_is_not_there_is_a_problem(command: Command, twin: Twin) -> None:
    await twin.refuse()
    said = await command.run("doctor", "--json")
    assert (said.code, levels(said)["OpenCode"], levels(said)["providers"]) == (
        1,
        "problem",
        "skipped",
    )
    assert "start it (`opencode serve`), or mend SERVER_URL" in finding(said, "OpenCode")["remedy"]


async def test_an_opencode_that_sets_up_its_folder_is_waited_for(
    command: Command, twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its health is there at once; its first answer for a folder takes seconds (facts 2.2)."""
    monkeypatch.setattr(check_opencode, "_LOOK_S", 0.3)
    slow = twin.fail(Hang(), path=r"^/provider$")
    asked = asyncio.create_task(command.run("doctor", "--json"))
    await asyncio.wait_for(slow.reached.wait(), PATIENCE_S)

    async def waits() -> bool:
        return not asked.done()

    await steadily(waits, for_s=1, what="the doctor waits")
    slow.release()
    assert levels(await asked)["providers"] == "ok"


async def test_another_generation_is_a_problem(command: Command, twin: Twin) -> None:
    twin.fail(Body(b"<html></html>"), path="/global/health", times=None)
    said = await command.run("doctor", "--json")
    assert said.code == 1
    assert "OpenCode 1.x" in finding(said, "OpenCode")["remedy"]


@pytest.mark.parametrize(
    ("settings", "check", "told"),
    [
        ({"DEFAULT_MODEL": "anthropic/x"}, "model", "anthropic has no key"),
        ({"DEFAULT_MODEL": "nobody/x"}, "model", "knows no provider 'nobody'"),
        ({"DEFAULT_MODEL": "scripted/nope"}, "model", "scripted has no model 'nope'"),
        ({"DEFAULT_AGENT": "nobody"}, "agent", "offers callers no agent 'nobody'"),
        ({"DEFAULT_AGENT": "general"}, "agent", "offers callers no agent 'general'"),
    ],
    ids=["no-key", "no-provider", "no-model", "no-agent", "a-sub-agent"],
)
async def test_a_default_that_cannot_be_used_is_a_problem(
    command: Command, settings: dict[str, str], check: str, told: str
) -> None:
    said = await command.with_settings(**settings).run("doctor", "--json")
    assert said.code == 1
    assert told in finding(said, check)["text"]
    assert finding(said, check)["remedy"]


async def test_a_key_that_does_not_reach_a_managed_opencode_is_a_warning(
    command: Command, twin: Twin
) -> None:
    """Ours: the variable is set where the server runs, and CHILD_ENV does not name it."""
    managed = command.with_settings(SERVER_URL="", SERVER_PASSWORD="")
    environ = {**managed.env, "ANTHROPIC_API_KEY": PASSWORD}
    settings = load_settings(environ)
    async with OpencodeClient(
        twin.url, username=twin.username, password=twin.password, request_timeout_s=5
    ) as client:
        found = await check_models(client, settings, environ)
        attached = await check_models(client, load_settings(command.env), environ)
    (withheld,) = (one for one in found if one.level is Level.WARNING)
    assert withheld.text == "ANTHROPIC_API_KEY: set here, and not passed to OpenCode"
    assert "CHILD_ENV=ANTHROPIC_API_KEY" in withheld.remedy
    assert all(one.level is Level.OK for one in attached)


async def test_defaults_that_are_there_are_ok(command: Command) -> None:
    said = await command.with_settings(DEFAULT_AGENT="build").run("doctor", "--json")
    assert (said.code, levels(said)["agent"]) == (0, "ok")


async def test_a_root_that_is_very_wide_is_a_warning(command: Command) -> None:
    said = await command.with_settings(ALLOWED_ROOTS="/").run("doctor", "--json")
    assert (said.code, finding(said, "roots")["level"]) == (0, "warning")


async def test_remote_folders_are_not_looked_at(command: Command) -> None:
    remote = command.with_settings(REMOTE_PATHS="true", ALLOWED_ROOTS="/srv", DEFAULT_CWD="/srv/x")
    said = await remote.run("doctor", "--json")
    assert finding(said, "roots")["level"] == "skipped"


async def test_another_programs_database_is_a_problem(command: Command) -> None:
    with closing(sqlite3.connect(database(command))) as file:
        file.execute("CREATE TABLE theirs (x)")
    said = await command.run("doctor", "--json")
    assert (said.code, "another program" in finding(said, "database")["text"]) == (1, True)


async def test_a_file_that_is_no_database_is_a_problem(command: Command) -> None:
    database(command).write_bytes(b"no database at all" * 100)
    said = await command.run("doctor", "--json")
    assert (said.code, levels(said)["database"]) == (1, "problem")


async def test_a_database_without_a_wal_is_a_warning(command: Command) -> None:
    await command.run("migrate")
    with closing(sqlite3.connect(database(command))) as file:
        file.execute("PRAGMA journal_mode = DELETE")
    said = await command.run("doctor", "--json")
    assert (said.code, "without a WAL" in finding(said, "database")["text"]) == (0, True)


async def test_a_newer_database_is_a_problem(command: Command) -> None:
    await command.run("migrate")
    with closing(sqlite3.connect(database(command))) as file:
        file.execute("PRAGMA user_version = 99")
    said = await command.run("doctor", "--json")
    assert (said.code, "schema 99" in finding(said, "database")["text"]) == (1, True)


async def test_the_tokens_of_http_are_looked_at(command: Command, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"alice:{PASSWORD}\n", encoding="utf-8")
    tokens.chmod(0o644)
    http = command.with_settings(TRANSPORT="http", AUTH_TOKENS_FILE=str(tokens))
    said = await http.run("doctor", "--json")
    assert finding(said, "tokens")["remedy"] == f"chmod 600 {tokens}"
    tokens.chmod(0o600)
    said = await http.run("doctor", "--json")
    assert levels(said)["tokens"] == "ok"
    assert PASSWORD not in said.out
    said = await command.with_settings(TRANSPORT="http").run("doctor", "--json")
    assert "may call" in finding(said, "tokens")["text"]


async def test_all_wrong_settings_are_lines_and_the_rest_is_skipped(
    command: Command, twin: Twin
) -> None:
    wrong = command.with_settings(PORT="x", END_ACTION="burn", SERVER_PASSWORD=PASSWORD)
    said = await wrong.run("doctor", "--json")
    assert said.code == 2
    settings = [one["text"] for one in said.json["checks"] if one["check"] == "settings"]
    assert len(settings) == 2
    assert "OPENCODE_MCP_PORT='x'" in "\n".join(settings)
    rest = {one["check"]: one["level"] for one in said.json["checks"] if one["level"] != "problem"}
    assert rest == dict.fromkeys(("database", "roots", "OpenCode", "providers"), "skipped")
    assert not twin.lines()


async def test_a_program_that_is_not_there_is_a_problem(command: Command) -> None:
    managed = command.with_settings(
        SERVER_URL="", SERVER_PASSWORD="", OPENCODE_BIN="/nowhere/opencode"
    )
    said = await managed.run("doctor", "--json")
    assert (said.code, levels(said)["providers"]) == (1, "skipped")
    assert "there is no executable '/nowhere/opencode'" in finding(said, "OpenCode")["text"]
    assert "OPENCODE_BIN" in finding(said, "OpenCode")["remedy"]


async def test_a_program_that_ends_at_once_is_a_problem_and_leaves_nothing(
    command: Command, tmp_path: Path
) -> None:
    managed = command.with_settings(SERVER_URL="", SERVER_PASSWORD="", OPENCODE_BIN="/bin/false")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    managed.env["TMPDIR"] = str(temporary)
    said = await managed.process("doctor", "--json")
    assert (said.code, levels(said)["OpenCode"]) == (1, "problem")
    assert "by hand to see why" in finding(said, "OpenCode")["remedy"]
    assert list(temporary.iterdir()) == []
    assert not list(database(command).parent.glob("tracking.db*"))


async def test_what_of_the_callers_has_no_effect_is_told(command: Command) -> None:
    tokens = {"AUTH_TOKENS": f"alice:{PASSWORD}"}
    said = await command.with_settings(**tokens).run("doctor", "--json")
    assert "TRANSPORT=http" in finding(said, "tokens")["remedy"]
    http = {"TRANSPORT": "http", **tokens}
    said = await command.with_settings(ADMINS="token:alcie", **http).run("doctor", "--json")
    assert "token:alcie" in finding(said, "admins")["text"]
    said = await command.with_settings(ADMINS="token:alice", **http).run("doctor", "--json")
    assert "admins" not in levels(said)

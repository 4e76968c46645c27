"""Settings as options: all but secrets, the strongest source, and checked like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest

from opencode_mcp.cli.commands import main
from opencode_mcp.cli.settings_options import SettingOption
from opencode_mcp.settings_model import NAMES, SECRETS, Settings
from tests.cli.command import Command

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2-hunter2-hunter2"


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(
        {"HOME": str(tmp_path), "OPENCODE_MCP_DEFAULT_CWD": str(tmp_path), "PATH": "/bin"}
        | {"OPENCODE_MCP_ALLOWED_ROOTS": str(tmp_path)}
    )


def commands_with_settings() -> list[click.Command]:
    context = click.Context(main)
    found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    group = found.pop("sessions")
    assert isinstance(group, click.Group)
    plain = [one for name, one in found.items() if name != "demo" and one is not None]
    return [*plain, *group.commands.values()]


@pytest.mark.parametrize("one", commands_with_settings(), ids=lambda one: str(one.name))
def test_every_setting_but_the_secrets_is_an_option(one: click.Command) -> None:
    options = {param.name for param in one.params if isinstance(param, SettingOption)}
    assert options == set(NAMES) - SECRETS
    assert not {param.name for param in one.params} & SECRETS


def test_the_help_of_serve_tells_what_each_setting_is(command: Command) -> None:
    text = " ".join(command.run_now("serve", "--help").out.split())
    for name in set(NAMES) - SECRETS:
        assert "--" + name.replace("_", "-") in text
    assert "the folder of a session that names none" in text
    assert "--transport [stdio|http]" in text
    assert "a whole number from 0 to 65535; default: 8000" in text


def test_other_commands_say_where_the_settings_are(command: Command) -> None:
    text = " ".join(command.run_now("sessions", "list", "--help").out.split())
    assert "`opencode-mcp serve --help` lists them" in text
    assert "--max-sandbox" not in text


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(
    command: Command, name: str
) -> None:
    said = command.run_now("config", f"--{name.replace('_', '-')}", SECRET)
    assert said.code == 2
    assert "No such option" in said.err
    assert SECRET not in said.out + said.err


def test_an_option_wins_over_the_environment_and_that_over_the_file(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "c.toml"
    file.write_text("port = 1\nmax_sessions = 2\nmax_output_chars = 300\n", encoding="utf-8")
    command = command.with_settings(PORT="4", MAX_SESSIONS="5")
    said = command.run_now("config", "--json", "--config", str(file), "--port", "9000")
    found = {one["name"]: (one["value"], one["source"]) for one in said.json["settings"]}
    assert found["port"] == (9000, "--port")
    assert found["max_sessions"] == (5, "OPENCODE_MCP_MAX_SESSIONS")
    assert found["max_output_chars"] == (300, f"max_output_chars in {file}")
    assert found["tombstone_days"] == (7, "default")
    assert said.json["configFile"] == str(file)


def test_the_configuration_file_may_be_named_before_the_command(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "c.toml"
    file.write_text("port = 1\n", encoding="utf-8")
    said = command.run_now("--config", str(file), "config", "--json", "--given")
    assert {"port"} <= {one["name"] for one in said.json["settings"]}


def test_a_switch_can_be_turned_off_against_the_environment(command: Command) -> None:
    command = command.with_settings(LOG_CONTENT="true")
    on, off = command.run_now("config"), command.run_now("config", "--no-log-content")
    assert "log_content                true" in on.out
    assert "log_content                false" in off.out


def test_all_wrong_options_are_shown_at_once_with_those_of_the_environment(
    command: Command,
) -> None:
    command = command.with_settings(END_ACTION="burn")
    said = command.run_now("sessions", "list", "--port", "x", "--default-model", "nope")
    assert said.code == 2
    assert said.out == ""
    assert "3 settings are wrong" in said.err
    assert "--port='x' (OPENCODE_MCP_PORT): must be a whole number from 0 to 65535" in said.err
    assert "--default-model='nope'" in said.err
    assert "OPENCODE_MCP_END_ACTION='burn': must be delete or archive" in said.err


def test_serve_takes_options_too(command: Command) -> None:
    said = command.run_now("serve", "--transport", "smoke")
    assert said.code == 2
    assert "--transport='smoke' (OPENCODE_MCP_TRANSPORT): must be stdio or http" in said.err


def test_commands_for_sessions_may_be_typed_anywhere(command: Command) -> None:
    """The home folder is no root unless it is named, but listing runs no session."""
    command = command.with_settings(ALLOWED_ROOTS="", DATABASE="/nowhere/t.db")
    said = command.run_now("sessions", "list")
    assert (said.code, "no tracking database at /nowhere/t.db" in said.err) == (1, True)


def test_option_names_and_settings_do_not_collide() -> None:
    for one in commands_with_settings():
        names = [param.name for param in one.params]
        assert len(names) == len(set(names)), one.name
    assert set(NAMES) <= set(Settings.model_fields)

"""Where settings come from, and who wins."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from opencode_mcp.records import EndAction, InstanceKind
from opencode_mcp.settings import load_settings
from tests.settings.support import load

REPO = Path(__file__).resolve().parents[2]


def test_defaults_are_the_contracts(project: Path) -> None:
    """Contract §4."""
    settings = load(project)
    assert settings.mode is InstanceKind.MANAGED
    assert settings.server_url is None
    assert settings.server_username == "opencode"
    assert settings.server_password is None
    assert settings.opencode_bin == "opencode"
    assert settings.airgap is True
    assert settings.default_cwd == project
    assert settings.allowed_roots == (project,)
    assert settings.default_wait_seconds == 50
    assert settings.on_call_cancel == "abort"
    assert (settings.turn_timeout_seconds, settings.max_turn_timeout_seconds) == (3600, 21600)
    assert settings.startup_timeout_seconds == 60
    assert settings.request_timeout_seconds == 30
    assert settings.cleanup_timeout_seconds == 15
    assert settings.end_action is EndAction.DELETE
    assert settings.tombstone_days == 7
    assert settings.max_sessions == 10_000
    assert settings.max_output_chars == 20_000
    assert (settings.log_level, settings.log_format) == ("info", None)
    assert settings.ignored_variables == ()


def test_database_lies_in_the_users_state_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert load(project).database == Path("/state/opencode-mcp/opencode-mcp.db")


def test_settings_cannot_be_changed(project: Path) -> None:
    settings = load(project)
    with pytest.raises(ValidationError):
        settings.max_sessions = 1  # type: ignore[misc]


def test_command_line_beats_environment_beats_file_beats_default(
    project: Path, tmp_path: Path
) -> None:
    """Contract §4, precedence."""
    file = tmp_path / "config.toml"
    file.write_text("max_sessions = 1\ntombstone_days = 1\nrequest_timeout_seconds = 1\n")
    environ = {
        "OPENCODE_MCP_MAX_SESSIONS": "2",
        "OPENCODE_MCP_TOMBSTONE_DAYS": "2",
        "OPENCODE_MCP_CONFIG": str(file),
    }
    settings = load(project, environ, max_sessions=3, cleanup_timeout_seconds=None)
    assert settings.max_sessions == 3
    assert settings.tombstone_days == 2
    assert settings.request_timeout_seconds == 1
    assert settings.cleanup_timeout_seconds == 15


def test_config_option_beats_config_variable(project: Path, tmp_path: Path) -> None:
    named, other = tmp_path / "named.toml", tmp_path / "other.toml"
    named.write_text("max_sessions = 1\n")
    other.write_text("max_sessions = 2\n")
    environ = {"OPENCODE_MCP_CONFIG": str(other)}
    settings = load_settings(environ, config_file=named, cwd=project)
    assert settings.max_sessions == 1


def test_users_config_file_is_read_when_none_is_named(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "opencode-mcp").mkdir()
    (tmp_path / "opencode-mcp" / "config.toml").write_text("max_sessions = 5\n")
    assert load(project).max_sessions == 5


def test_empty_text_means_unset_everywhere(project: Path, tmp_path: Path) -> None:
    """Contract §4: an empty string means unset."""
    file = tmp_path / "config.toml"
    file.write_text('default_model = "a/b"\ndefault_agent = ""\n')
    environ = {
        "OPENCODE_MCP_CONFIG": str(file),
        "OPENCODE_MCP_DEFAULT_MODEL": "",
        "OPENCODE_MCP_SERVER_URL": "",
        "OPENCODE_MCP_MODE": "",
    }
    settings = load(project, environ, default_model="")
    assert settings.default_model == "a/b"
    assert settings.default_agent is None
    assert settings.mode is InstanceKind.MANAGED


def test_lists_are_separated_text_or_toml_arrays(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'child_env = ["A", "B_*"]\nallowed_roots = ["{project}", "{tmp_path}"]\n')
    from_file = load_settings({}, config_file=file, cwd=project)
    environ = {
        "OPENCODE_MCP_CHILD_ENV": " A, B_* ,",
        "OPENCODE_MCP_ALLOWED_ROOTS": f"{project}:{tmp_path}",
    }
    for settings in (from_file, load(project, environ)):
        assert settings.child_env == ("A", "B_*")
        assert settings.allowed_roots == (project, tmp_path)


def test_serve_args_are_shell_words(project: Path) -> None:
    environ = {"OPENCODE_MCP_SERVE_ARGS": "--log-level 'WARN' --pure"}
    assert load(project, environ).serve_args == ("--log-level", "WARN", "--pure")


def test_choices_are_taken_in_any_case(project: Path) -> None:
    environ = {"OPENCODE_MCP_LOG_LEVEL": "WARNING", "OPENCODE_MCP_END_ACTION": "Archive"}
    settings = load(project, environ)
    assert settings.log_level == "warning"
    assert settings.end_action is EndAction.ARCHIVE

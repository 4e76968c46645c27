"""Where sessions may run, and what a managed OpenCode gets to see."""

from __future__ import annotations

from pathlib import Path

import pytest

from opencode_mcp.settings import child_environment, load_settings
from tests.settings.support import URL, faults, load

REPO = Path(__file__).resolve().parents[2]


def test_claudes_project_is_the_default_folder(project: Path, tmp_path: Path) -> None:
    settings = load_settings({"CLAUDE_PROJECT_DIR": str(project)}, cwd=tmp_path)
    assert settings.default_cwd == project
    assert settings.allowed_roots == (project,)


def test_default_folder_and_roots_are_real_paths(project: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(project)
    environ = {
        "OPENCODE_MCP_DEFAULT_CWD": str(link),
        "OPENCODE_MCP_ALLOWED_ROOTS": str(link / ".." / "link"),
    }
    settings = load_settings(environ)
    assert settings.default_cwd == project
    assert settings.allowed_roots == (project,)


@pytest.mark.parametrize("where", ["/", "home"])
@pytest.mark.parametrize("how", ["started-there", "OPENCODE_MCP_DEFAULT_CWD", "CLAUDE_PROJECT_DIR"])
def test_implied_root_that_is_everything_is_refused_until_named(
    project: Path, where: str, how: str
) -> None:
    """Contract §4: an implied root of `/` or the home folder is refused: name it."""
    folder = Path("/") if where == "/" else project
    environ = {"HOME": str(project)}
    if how != "started-there":
        environ[how] = str(folder)
    (fault,) = faults(folder, environ)
    assert fault.startswith(f"  OPENCODE_MCP_DEFAULT_CWD='{folder}'")
    assert "OPENCODE_MCP_ALLOWED_ROOTS" in fault
    named = load(folder, environ | {"OPENCODE_MCP_ALLOWED_ROOTS": str(folder)})
    assert named.allowed_roots == (folder,)


def test_default_folder_that_was_named_must_lie_in_a_root(project: Path, tmp_path: Path) -> None:
    inside = project / "inside"
    inside.mkdir()
    environ = {
        "OPENCODE_MCP_DEFAULT_CWD": str(project),
        "OPENCODE_MCP_ALLOWED_ROOTS": str(inside),
    }
    (fault,) = faults(project, environ)
    assert fault.startswith(f"  OPENCODE_MCP_DEFAULT_CWD='{project}': must lie within")
    settings = load(project, environ | {"OPENCODE_MCP_ALLOWED_ROOTS": str(tmp_path)})
    assert settings.default_cwd == project


def test_folder_of_the_process_may_lie_outside_the_roots(project: Path, tmp_path: Path) -> None:
    """Ours: a desktop client starts its servers in `/`; then callers have to give `cwd`."""
    settings = load_settings({"OPENCODE_MCP_ALLOWED_ROOTS": str(project)}, cwd=tmp_path)
    assert settings.allowed_roots == (project,)


def test_each_bad_root_is_reported(project: Path) -> None:
    file = project / "file"
    file.touch()
    lines = faults(project, {"OPENCODE_MCP_ALLOWED_ROOTS": f"/no/such/folder:{file}:{project}"})
    assert len(lines) == 2
    assert "'/no/such/folder' does not exist" in lines[0]
    assert f"'{file}' is not a folder" in lines[1]


def test_remote_folders_are_not_looked_for_on_this_machine(project: Path) -> None:
    environ = {
        "OPENCODE_MCP_SERVER_URL": URL,
        "OPENCODE_MCP_REMOTE_PATHS": "true",
        "OPENCODE_MCP_DEFAULT_CWD": "/over//there/./x/",
        "CLAUDE_PROJECT_DIR": str(project),
    }
    settings = load(project, environ)
    assert settings.default_cwd == Path("/over/there/x")
    assert settings.allowed_roots == (Path("/over/there/x"),)
    (fault,) = faults(project, environ | {"OPENCODE_MCP_DEFAULT_CWD": "/over/../there"})
    assert ".." in fault


def test_remote_folders_need_a_remote_opencode(project: Path) -> None:
    (fault,) = faults(project, {"OPENCODE_MCP_REMOTE_PATHS": "true"})
    assert "managed" in fault


def test_managed_opencode_sees_what_it_needs_and_nothing_of_ours(project: Path) -> None:
    """Contract §4, CHILD_ENV."""
    kept = {
        "PATH": "/bin",
        "HOME": "/h",
        "USER": "u",
        "LANG": "C",
        "LC_ALL": "C",
        "TZ": "UTC",
        "TMPDIR": "/t",
        "SHELL": "/bin/sh",
        "XDG_DATA_HOME": "/d",
        "SSL_CERT_FILE": "/c",
        "HTTPS_PROXY": "p",
        "no_proxy": "n",
        "OPENCODE_CONFIG": "/o",
        "ANTHROPIC_API_KEY": "k",
        "AWS_REGION": "r",
    }
    dropped = {
        "OPENCODE_MCP_SERVER_PASSWORD": "x",
        "OPENCODE_SERVER_PASSWORD": "x",
        "OPENCODE_SERVER_USERNAME": "x",
        "OPENAI_API_KEY": "x",
        "ANTHROPIC_API_KEY_2": "x",
        "AWSX": "x",
        "PATHS": "x",
        "LD_PRELOAD": "x",
    }
    ours = {
        "OPENCODE_MCP_CHILD_ENV": "ANTHROPIC_API_KEY,AWS_*",
        "OPENCODE_MCP_AIRGAP": "false",
    }
    assert child_environment(kept | dropped, load(project, ours)) == kept


def test_airgap_switches_off_what_reaches_out_unless_the_operator_chose(project: Path) -> None:
    child = child_environment({"OPENCODE_DISABLE_SHARE": "0"}, load(project))
    assert child == {
        "OPENCODE_DISABLE_SHARE": "0",
        "OPENCODE_DISABLE_AUTOUPDATE": "true",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "true",
        "OPENCODE_DISABLE_MODELS_FETCH": "true",
    }

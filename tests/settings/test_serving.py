"""Settings about HTTP callers: who may call, from where, and what is refused together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opencode_mcp.records import Sandbox
from opencode_mcp.settings_web import NamedToken
from tests.settings.support import URL, faults, load

if TYPE_CHECKING:
    from pathlib import Path

_ALICE = "alice:0123456789abcdef"
_BOB = "bob:fedcba9876543210"
_HTTP = {"OPENCODE_MCP_TRANSPORT": "http"}
_ATTACH = _HTTP | {"OPENCODE_MCP_SERVER_URL": URL}
_BEYOND = _HTTP | {"OPENCODE_MCP_HOST": "0.0.0.0"}


def test_a_widest_sandbox_that_is_not_named_depends_on_the_transport(project: Path) -> None:
    assert load(project).max_sandbox is Sandbox.DANGER_FULL_ACCESS
    assert load(project, _HTTP).max_sandbox is Sandbox.WORKSPACE_WRITE
    assert load(project, transport="http").max_sandbox is Sandbox.WORKSPACE_WRITE
    named = _HTTP | {"OPENCODE_MCP_MAX_SANDBOX": "danger-full-access"}
    assert load(project, named).max_sandbox is Sandbox.DANGER_FULL_ACCESS


def test_over_http_a_default_sandbox_must_be_within_the_narrower_ceiling(project: Path) -> None:
    (fault,) = faults(project, _HTTP | {"OPENCODE_MCP_DEFAULT_SANDBOX": "danger-full-access"})
    assert "must not be wider than OPENCODE_MCP_MAX_SANDBOX, workspace-write" in fault


def test_tokens_are_split_at_the_first_colon(project: Path) -> None:
    settings = load(project, _ATTACH | {"OPENCODE_MCP_AUTH_TOKENS": f"{_ALICE}:x,{_BOB}"})
    assert settings.auth_tokens == (
        NamedToken("alice", "0123456789abcdef:x"),
        NamedToken("bob", "fedcba9876543210"),
    )


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        ("hunter2hunter2hunter2", "must be name:token"),
        ("a b:hunter2hunter2hunter2", "must be name:token"),
        ("alice:hunter2", "at least 16"),
        ("alice:hunter2 hunter2 hunter2", "at least 16"),
        ("alice:hunter2hunter2hunter2,alice:hunter3hunter3hunter3", "token 2 has the name"),
        ("alice:hunter2hunter2hunter2,bob:hunter2hunter2hunter2", "two are the same"),
        ("hunter2hunter2hunter2:alice", "behind the name"),
        (
            "hunter2hunter2hunter2:alice-and-her-friends,hunter2hunter2hunter2:bob-and-his-friends",
            "the name of one before it",
        ),
    ],
)
def test_a_wrong_token_is_refused_and_never_shown(
    project: Path, tmp_path: Path, tokens: str, reason: str
) -> None:
    (fault,) = faults(project, _ATTACH | {"OPENCODE_MCP_AUTH_TOKENS": tokens})
    assert reason in fault
    file = tmp_path / "tokens"
    file.write_text(tokens.replace(",", "\n"), encoding="utf-8")
    (from_file,) = faults(project, _ATTACH | {"OPENCODE_MCP_AUTH_TOKENS_FILE": str(file)})
    assert reason in from_file
    assert "hunter" not in fault + from_file


def test_a_file_of_tokens_may_hold_comments_and_blank_lines(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# who\n\n {_ALICE} \n{_BOB},comma\n", encoding="utf-8")
    settings = load(project, _ATTACH | {"OPENCODE_MCP_AUTH_TOKENS_FILE": str(file)})
    assert [token.name for token in settings.auth_tokens] == ["alice", "bob"]


@pytest.mark.parametrize("text", [None, "", "# nobody\n"])
def test_a_file_of_tokens_that_lets_nobody_in_is_refused(
    project: Path, tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "tokens"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    (fault,) = faults(project, _ATTACH | {"OPENCODE_MCP_AUTH_TOKENS_FILE": str(file)})
    assert fault.strip().startswith(f"OPENCODE_MCP_AUTH_TOKENS_FILE='{file}': must be a readable")


def test_a_list_of_tokens_without_one_is_refused(project: Path) -> None:
    """Ours: it would let anybody in on loopback, behind whose proxy ever."""
    (fault,) = faults(project, _ATTACH | {"OPENCODE_MCP_AUTH_TOKENS": " , "})
    assert "must hold at least one name:token" in fault


def test_tokens_are_in_no_text_of_the_settings(project: Path) -> None:
    settings = load(project, _ATTACH | {"OPENCODE_MCP_AUTH_TOKENS": _ALICE})
    assert "0123456789abcdef" not in repr(settings) + str(settings)


def test_beyond_loopback_callers_must_have_tokens_unless_anybody_is_meant(project: Path) -> None:
    """Case 40."""
    attach = {"OPENCODE_MCP_SERVER_URL": URL}
    (fault,) = faults(project, _BEYOND | attach)
    assert "OPENCODE_MCP_AUTH_TOKENS" in fault
    assert "OPENCODE_MCP_ALLOW_ANONYMOUS" in fault
    load(project, _BEYOND | attach | {"OPENCODE_MCP_AUTH_TOKENS": _ALICE})
    load(project, _BEYOND | attach | {"OPENCODE_MCP_ALLOW_ANONYMOUS": "true"})
    load(project, _BEYOND | {"OPENCODE_MCP_TRANSPORT": "stdio"})  # as the image has it


def test_tokens_and_anonymous_callers_exclude_each_other(project: Path) -> None:
    both = {"OPENCODE_MCP_AUTH_TOKENS": _ALICE, "OPENCODE_MCP_ALLOW_ANONYMOUS": "true"}
    (fault,) = faults(project, _ATTACH | both)
    assert fault.strip().startswith("OPENCODE_MCP_ALLOW_ANONYMOUS='true': must be false")


def test_several_principals_share_a_managed_opencode_only_if_told(project: Path) -> None:
    two = _HTTP | {"OPENCODE_MCP_AUTH_TOKENS": f"{_ALICE},{_BOB}"}
    (fault,) = faults(project, two)
    assert fault.strip().startswith("OPENCODE_MCP_ALLOW_SHARED_MANAGED: must be true for 2")
    load(project, two | {"OPENCODE_MCP_ALLOW_SHARED_MANAGED": "true"})
    load(project, two | {"OPENCODE_MCP_SERVER_URL": URL})
    load(project, _HTTP | {"OPENCODE_MCP_AUTH_TOKENS": _ALICE})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOST", "127.0.0.1:8000"),
        ("HOST", "http://127.0.0.1"),
        ("HTTP_PATH", "mcp"),
        ("HTTP_PATH", "/"),
        ("HTTP_PATH", "/a b"),
        ("HTTP_PATH", "/../x"),
        ("HTTP_PATH", "/metrics"),
        ("ALLOWED_HOSTS", "http://mcp.example.org"),
        ("ALLOWED_HOSTS", "mcp.example.org/x"),
        ("ALLOWED_HOSTS", "a.*.example.org"),
        ("ALLOWED_ORIGINS", "chat.example.org"),
        ("ALLOWED_ORIGINS", "https://chat.example.org/x"),
        ("ALLOWED_ORIGINS", "https://u:p@chat.example.org"),
        ("ADMINS", "alice"),
        ("ADMINS", "token:"),
        ("TRANSPORT", "sse"),
        ("PORT", "65536"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(project: Path, name: str, value: str) -> None:
    (fault,) = faults(project, {f"OPENCODE_MCP_{name}": value})
    assert fault.strip().startswith(f"OPENCODE_MCP_{name}={value!r}: must be")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("HOST", "[::1]", "::1"),
        ("HOST", "LOCALHOST", "localhost"),
        ("HTTP_PATH", "/team/mcp/", "/team/mcp"),
        ("ALLOWED_HOSTS", "MCP.example.org, bridge:8000,[::1]:*,*.example.org", None),
        ("ALLOWED_ORIGINS", "https://Chat.example.org/", ("https://chat.example.org",)),
        (
            "ALLOWED_ORIGINS",
            "https://a.test:443,http://b.test:80",
            ("https://a.test", "http://b.test"),
        ),
        (
            "ALLOWED_ORIGINS",
            "https://a.test:8443,http://b.test:443",
            ("https://a.test:8443", "http://b.test:443"),
        ),
        ("ADMINS", "token:alice,local", ("token:alice", "local")),
    ],
)
def test_a_right_value_is_kept_in_one_spelling(
    project: Path, name: str, value: str, expected: object
) -> None:
    settings = load(project, {f"OPENCODE_MCP_{name}": value})
    hosts = ("mcp.example.org", "bridge:8000", "[::1]:*", "*.example.org")
    assert getattr(settings, name.lower()) == (expected or hosts)

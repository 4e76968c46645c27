"""The address and the password of an OpenCode that runs already."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from opencode_mcp.records import InstanceKind
from tests.settings.support import URL, faults, load

REPO = Path(__file__).resolve().parents[2]


def test_url_makes_the_mode_attach(project: Path) -> None:
    settings = load(project, {"OPENCODE_MCP_SERVER_URL": URL})
    assert settings.mode is InstanceKind.ATTACH
    assert settings.default_cwd is None
    assert settings.allowed_roots == ()


def test_managed_may_be_asked_for_although_a_url_is_set(project: Path) -> None:
    environ = {"OPENCODE_MCP_SERVER_URL": URL, "OPENCODE_MCP_MODE": "managed"}
    assert load(project, environ).mode is InstanceKind.MANAGED


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        pytest.param("http://localhost:4096", "http://127.0.0.1:4096", id="localhost"),
        pytest.param(
            "http://LocalHost.:4096/", "http://127.0.0.1:4096", id="localhost-spelled-odd"
        ),
        pytest.param("http://[::1]:4096", "http://127.0.0.1:4096", id="ipv6-loopback"),
        pytest.param("HTTP://127.0.0.1:80", "http://127.0.0.1", id="default-http-port"),
        pytest.param(
            "https://A.Example.org:443/", "https://a.example.org", id="default-https-port"
        ),
        pytest.param("https://a.b/code/x//", "https://a.b/code/x", id="path-prefix-stays"),
        pytest.param("https://[2001:DB8:0::1]:81", "https://[2001:db8::1]:81", id="ipv6"),
        pytest.param("http://127.0.0.2:1", "http://127.0.0.2:1", id="another-loopback-address"),
    ],
)
def test_equal_addresses_become_equal_text(project: Path, given: str, normal: str) -> None:
    """Contract §1, attach: the normalised URL (loopback names are one)."""
    assert load(project, {"OPENCODE_MCP_SERVER_URL": given}).server_url == normal


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        pytest.param("ftp://h", "http:// or https://", id="scheme"),
        pytest.param("localhost:4096", "http:// or https://", id="no-scheme"),
        pytest.param("https://", "name a host", id="no-host"),
        pytest.param("https://h:0", "port", id="port-zero"),
        pytest.param("https://h:99999", "port", id="port-too-large"),
        pytest.param("https://h:x", "port", id="port-a-word"),
        pytest.param("https://h/a b", "spaces", id="space"),
        pytest.param("https://h\\a", "one http:// or https:// address", id="backslash"),
        pytest.param("https://h/../a", "..", id="dots"),
        pytest.param("https://-h", "host", id="host-name"),
        pytest.param("https://[::1", "http:// or https://", id="open-bracket"),
        pytest.param("https://[v1.x]", "IPv6", id="no-ipv6"),
    ],
)
def test_bad_address_is_refused(project: Path, url: str, reason: str) -> None:
    (fault,) = faults(project, {"OPENCODE_MCP_SERVER_URL": url})
    assert fault.startswith("  OPENCODE_MCP_SERVER_URL=")
    assert reason in fault


@pytest.mark.parametrize("tail", ["@h", "@h:1/x", "@h?t=hunter2", "/x?token=hunter2", "/#hunter2"])
def test_secret_in_an_address_is_refused_and_not_shown(project: Path, tail: str) -> None:
    (fault,) = faults(project, {"OPENCODE_MCP_SERVER_URL": f"https://me:hunter2{tail}"})
    assert "hunter2" not in fault


def test_plain_http_beyond_loopback_names_the_setting_that_allows_it(project: Path) -> None:
    environ = {"OPENCODE_MCP_SERVER_URL": "http://opencode:4096"}
    (fault,) = faults(project, environ)
    assert "OPENCODE_MCP_ALLOW_INSECURE_HTTP" in fault
    allowed = load(project, environ | {"OPENCODE_MCP_ALLOW_INSECURE_HTTP": "true"})
    assert allowed.server_url == "http://opencode:4096"


def test_attach_without_an_address_is_refused(project: Path) -> None:
    (fault,) = faults(project, {"OPENCODE_MCP_MODE": "attach"})
    assert "OPENCODE_MCP_SERVER_URL" in fault


def test_opencodes_own_variables_are_read_after_ours(project: Path) -> None:
    theirs = {
        "OPENCODE_MCP_SERVER_URL": URL,
        "OPENCODE_SERVER_USERNAME": "theirs",
        "OPENCODE_SERVER_PASSWORD": "their password",
    }
    settings = load(project, theirs)
    assert settings.server_username == "theirs"
    assert settings.server_password == SecretStr("their password")
    ours = {"OPENCODE_MCP_SERVER_USERNAME": "ours", "OPENCODE_MCP_SERVER_PASSWORD": "our password"}
    settings = load(project, theirs | ours)
    assert settings.server_username == "ours"
    assert settings.server_password == SecretStr("our password")


def test_password_file_is_read_and_beats_opencodes_variable(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("from the file \n")
    environ = {
        "OPENCODE_MCP_SERVER_URL": URL,
        "OPENCODE_MCP_SERVER_PASSWORD_FILE": str(file),
        "OPENCODE_SERVER_PASSWORD": "theirs",
    }
    settings = load(project, environ)
    assert settings.server_password == SecretStr("from the file ")


def test_password_of_a_stronger_source_beats_the_file_of_a_weaker_one(
    project: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('server_password_file = "/nowhere"\n')
    environ = {"OPENCODE_MCP_CONFIG": str(config), "OPENCODE_MCP_SERVER_PASSWORD": "ours"}
    settings = load(project, environ)
    assert settings.server_password == SecretStr("ours")
    assert settings.server_password_file is None


def test_password_and_password_file_from_one_source_are_refused(
    project: Path, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("x")
    environ = {
        "OPENCODE_MCP_SERVER_PASSWORD": "hunter2",
        "OPENCODE_MCP_SERVER_PASSWORD_FILE": str(file),
    }
    (fault,) = faults(project, environ)
    assert "OPENCODE_MCP_SERVER_PASSWORD_FILE" in fault
    assert "hunter2" not in fault


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="missing"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\n", id="empty-line"),
        pytest.param(b"hunter2\nhunter3\n", id="two-lines"),
        pytest.param(b"hunter2\xff", id="not-utf-8"),
    ],
)
def test_bad_password_file_is_named_and_its_content_is_not(
    project: Path, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    (fault,) = faults(project, {"OPENCODE_MCP_SERVER_PASSWORD_FILE": str(file)})
    assert f"OPENCODE_MCP_SERVER_PASSWORD_FILE='{file}'" in fault
    assert "hunter" not in fault


def test_password_is_not_in_the_settings_text(project: Path) -> None:
    settings = load(project, {"OPENCODE_MCP_SERVER_PASSWORD": "hunter2"})
    assert "hunter2" not in f"{settings!r} {settings}"

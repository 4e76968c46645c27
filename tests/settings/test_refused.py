"""What stops a start, and how it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from opencode_mcp.settings_serving import PREFIX
from tests.settings.support import faults, load

REPO = Path(__file__).resolve().parents[2]


def test_all_faults_come_in_one_message(project: Path) -> None:
    """Contract §4: with the variable's name, the value and what is allowed, all in one message."""
    lines = faults(
        project,
        {
            "OPENCODE_MCP_MAX_SESSIONS": "many",
            "OPENCODE_MCP_MAX_SESSION": "1",
            "OPENCODE_MCP_END_ACTION": "burn",
            "OPENCODE_MCP_AIRGAP": "perhaps",
            "OPENCODE_MCP_TURN_TIMEOUT_SECONDS": "30000",
            "OPENCODE_MCP_MODE": "attach",
            "OPENCODE_MCP_DEFAULT_CWD": "/no/such/folder",
        },
        default_model="nonsense",
    )
    assert {line.strip().partition(":")[0]: line.partition(": ")[2] for line in lines} == {
        "OPENCODE_MCP_MAX_SESSION": "unknown variable; the nearest known one is"
        " OPENCODE_MCP_MAX_SESSIONS",
        "OPENCODE_MCP_MODE='attach'": "needs OPENCODE_MCP_SERVER_URL,"
        " the address of the running OpenCode (the `bundled` image brings one of its own)",
        "OPENCODE_MCP_AIRGAP='perhaps'": "must be true or false",
        "OPENCODE_MCP_DEFAULT_CWD='/no/such/folder'": "does not exist",
        "OPENCODE_MCP_END_ACTION='burn'": "must be delete or archive",
        "OPENCODE_MCP_MAX_SESSIONS='many'": "must be a whole number from 1 to 1000000",
        "OPENCODE_MCP_TURN_TIMEOUT_SECONDS='30000'": "must be at most"
        " OPENCODE_MCP_MAX_TURN_TIMEOUT_SECONDS, 21600",
        "--default-model='nonsense' (OPENCODE_MCP_DEFAULT_MODEL)": "must be provider/model,"
        " for example anthropic/claude-sonnet-4-5",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEFAULT_WAIT_SECONDS", "601"),
        ("DEFAULT_WAIT_SECONDS", "-1"),
        ("REQUEST_TIMEOUT_SECONDS", "0"),
        ("REQUEST_TIMEOUT_SECONDS", "1.5"),
        ("STARTUP_TIMEOUT_SECONDS", "inf"),
        ("CLEANUP_TIMEOUT_SECONDS", "15s"),
        ("MAX_TURN_TIMEOUT_SECONDS", "1e9"),
        ("TOMBSTONE_DAYS", "0"),
        ("MAX_SESSIONS", "true"),
        ("MAX_OUTPUT_CHARS", "50000"),
        ("LOG_LEVEL", "loud"),
        ("LOG_FORMAT", "xml"),
        ("ON_CALL_CANCEL", "maybe"),
        ("ON_EXIT", "leave"),
        ("ON_EXIT", "keep"),  # managed: that OpenCode would stop with us
        ("ALLOW_INSECURE_HTTP", "2"),
        ("DATABASE", "here.db"),
        ("DATABASE", "~/here.db"),
        ("DEFAULT_CWD", "here"),
        ("ALLOWED_ROOTS", "/:here"),
        ("DEFAULT_MODEL", "/model"),
        ("DEFAULT_MODEL", "provider/"),
        ("DEFAULT_AGENT", " build"),
        ("DEFAULT_AGENT", "two\nlines"),
        ("SERVER_USERNAME", "a:b"),
        ("SERVER_PASSWORD_FILE", "password"),
        ("OPENCODE_BIN", " "),
        ("SERVE_ARGS", "--log-level 'WARN"),
        ("SERVE_ARGS", "--port=1"),
        ("SERVE_ARGS", "--hostname 0.0.0.0"),
        ("SERVE_ARGS", "--mdns"),
        ("SERVE_ARGS", "--mdns-domain x"),
        ("SERVE_ARGS", "--cors x"),
        ("CHILD_ENV", "*"),
        ("CHILD_ENV", "A B"),
        ("CHILD_ENV", "A=b"),
        ("CHILD_ENV", "AWS*"),
        ("CHILD_ENV", "OPENCODE_MCP_SERVER_PASSWORD"),
        ("CHILD_ENV", "OPENCODE_SERVER_*"),
    ],
)
def test_wrong_value_is_named_with_what_is_allowed(project: Path, name: str, value: str) -> None:
    (fault,) = faults(project, {PREFIX + name: value})
    assert fault.startswith(f"  {PREFIX}{name}={value!r}: must ")


def test_long_value_is_cut(project: Path) -> None:
    (fault,) = faults(project, {"OPENCODE_MCP_MODE": "x" * 500})
    assert len(fault) < 200


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("OPENCODE_MCP_MAX_SESSION", "OPENCODE_MCP_MAX_SESSIONS"),
        ("OPENCODE_MCP_SERVER_PASSWRD", "OPENCODE_MCP_SERVER_PASSWORD"),
        ("opencode_mcp_mode", "OPENCODE_MCP_MODE"),
        ("OPENCODE_MCP_IGNORED_VARIABLES", "OPENCODE_MCP_"),
        ("OPENCODE_MCP_CODEX_TOOL", "OPENCODE_MCP_CODEX_TOOLS"),
        ("OPENCODE_MCP_TEST_OPENCODE", "OPENCODE_MCP_"),
        ("OPENCODE_MCP_", "OPENCODE_MCP_"),
    ],
)
def test_unknown_variable_is_refused_with_the_nearest_name_and_without_its_value(
    project: Path, name: str, nearest: str
) -> None:
    (fault,) = faults(project, {name: "hunter2"})
    assert fault.startswith(f"  {name}: unknown variable")
    assert nearest in fault.partition(": ")[2]
    assert "hunter2" not in fault


def test_unknown_key_of_the_file_is_refused_with_the_nearest_name(
    project: Path, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('max_session = 1\n[server]\nurl = "https://me:hunter2@h"\n')
    first, second = faults(project, {"OPENCODE_MCP_CONFIG": str(file)})
    assert first == f"  max_session in {file}: unknown key; the nearest known one is max_sessions"
    assert second.startswith(f"  server in {file}: unknown key")


def test_wrong_value_in_the_file_names_key_file_and_variable(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("max_sessions = true\nopencode_bin = 5\n")
    first, second = faults(project, {"OPENCODE_MCP_CONFIG": str(file)})
    assert f"opencode_bin in {file}=5 (OPENCODE_MCP_OPENCODE_BIN): must be" in first
    assert f"max_sessions in {file}=True (OPENCODE_MCP_MAX_SESSIONS): must be" in second


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="missing"),
        pytest.param(b"max_sessions = = 1", id="no-toml"),
        pytest.param(b"max_sessions = 1 \xff", id="no-utf-8"),
    ],
)
def test_named_file_that_cannot_be_read_is_refused(
    project: Path, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "config.toml"
    if content is not None:
        file.write_bytes(content)
    (fault,) = faults(project, {"OPENCODE_MCP_CONFIG": str(file)})
    assert str(file) in fault


def test_unknown_override_is_refused(project: Path) -> None:
    (fault,) = faults(project, {}, max_session=1)
    assert fault == "  --max-session: unknown option; the nearest known one is --max-sessions"


def test_kubernetes_service_links_are_passed_over_and_reported(project: Path) -> None:
    """Contract §4; the names are Kubernetes' for a service called opencode-mcp."""
    links = {
        "OPENCODE_MCP_PORT": "tcp://10.0.0.1:8000",
        "OPENCODE_MCP_PORT_8000_TCP": "tcp://10.0.0.1:8000",
        "OPENCODE_MCP_PORT_8000_TCP_ADDR": "10.0.0.1",
        "OPENCODE_MCP_PORT_8000_TCP_PORT": "8000",
        "OPENCODE_MCP_PORT_8000_TCP_PROTO": "tcp",
        "OPENCODE_MCP_SERVICE_HOST": "10.0.0.1",
        "OPENCODE_MCP_SERVICE_PORT_HTTP": "8000",
    }
    assert load(project, links).ignored_variables == tuple(sorted(links))


def test_port_that_is_no_service_link_is_the_setting(project: Path) -> None:
    assert load(project, {"OPENCODE_MCP_PORT": "8001"}).port == 8001
    (fault,) = faults(project, {"OPENCODE_MCP_PORT": "udp:8000"})
    assert fault.strip() == ("OPENCODE_MCP_PORT='udp:8000': must be a whole number from 0 to 65535")


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"MAX_SANDBOX": "read-only"}, "OPENCODE_MCP_MAX_SANDBOX, read-only"),
        (
            {"MAX_SANDBOX": "workspace-write", "DEFAULT_SANDBOX": "danger-full-access"},
            "OPENCODE_MCP_MAX_SANDBOX, workspace-write",
        ),
        (
            {"ALLOWED_APPROVAL_POLICIES": "on-request,caller"},
            "OPENCODE_MCP_ALLOWED_APPROVAL_POLICIES, on-request, caller",
        ),
    ],
)
def test_a_default_beyond_the_ceiling_is_refused(
    project: Path, environ: dict[str, str], named: str
) -> None:
    (fault,) = faults(project, {f"OPENCODE_MCP_{name}": text for name, text in environ.items()})
    assert named in fault

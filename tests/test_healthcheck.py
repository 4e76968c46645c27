"""The image's health check reads what the server reads, without its libraries."""

from __future__ import annotations

import importlib.util
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opencode_mcp.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable

_FILE = Path(__file__).resolve().parents[1] / "container" / "healthcheck.py"
_spec = importlib.util.spec_from_file_location("healthcheck", _FILE)
assert _spec is not None
assert _spec.loader is not None
healthcheck: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(healthcheck)

TOKENS = "alice:0123456789abcdef"


@pytest.mark.parametrize(
    ("env", "toml"),
    [
        pytest.param({}, "", id="defaults"),
        pytest.param({"TRANSPORT": "http"}, "", id="variable"),
        pytest.param({"TRANSPORT": " HTTP "}, "", id="in-any-case"),
        pytest.param({"TRANSPORT": "http", "PORT": "9000"}, "port = 9001", id="variable-wins"),
        pytest.param({"TRANSPORT": ""}, 'transport = "http"\nport = 9001', id="empty-is-unset"),
        pytest.param({"TRANSPORT": "http", "HOST": "[::1]"}, "", id="brackets"),
        pytest.param({"TRANSPORT": "http"}, 'host = "0.0.0.0"', id="file"),
        pytest.param({"TRANSPORT": "http"}, 'host = ""', id="empty-in-the-file"),
    ],
)
def test_it_understands_what_the_settings_do(
    tmp_path: Path, env: dict[str, str], toml: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(toml, encoding="utf-8")
    environ = {f"OPENCODE_MCP_{name}": value for name, value in env.items()}
    environ |= {"OPENCODE_MCP_CONFIG": str(file), "OPENCODE_MCP_AUTH_TOKENS": TOKENS}
    settings = load_settings(environ, cwd=tmp_path)
    assert healthcheck.settings([], environ) == {
        "transport": settings.transport,
        "host": settings.host,
        "port": str(settings.port),
    }
    without = {name: text for name, text in environ.items() if name != "OPENCODE_MCP_CONFIG"}
    for arguments in (["--config", str(file), "serve"], [f"--config={file}"]):
        assert healthcheck.settings(arguments, without) == healthcheck.settings([], environ)


def test_the_users_own_file_is_read_and_a_broken_one_left_to_the_server(tmp_path: Path) -> None:
    folder = tmp_path / "opencode-mcp"
    folder.mkdir()
    (folder / "config.toml").write_text('transport = "http"', encoding="utf-8")
    assert healthcheck.settings([], {"XDG_CONFIG_HOME": str(tmp_path)})["transport"] == "http"
    (folder / "config.toml").write_text("transport =", encoding="utf-8")
    assert healthcheck.settings([], {"XDG_CONFIG_HOME": str(tmp_path)})["transport"] == "stdio"


def test_the_command_line_wins() -> None:
    environ = {"OPENCODE_MCP_PORT": "1", "OPENCODE_MCP_TRANSPORT": "stdio"}
    found = healthcheck.settings(["serve", "--transport", "http", "--port=2"], environ)
    assert found == {"transport": "http", "host": "127.0.0.1", "port": "2"}


SERVER = "/opt/opencode-mcp/bin/python\0/opt/opencode-mcp/bin/opencode-mcp"


@pytest.mark.parametrize(
    ("processes", "arguments"),
    [
        pytest.param({1: "tini\0--\0opencode-mcp", 7: SERVER}, [], id="behind-tini"),
        pytest.param({1: f"{SERVER}\0serve\0--port\x001"}, ["serve", "--port", "1"], id="alone"),
        pytest.param({1: "python3.12\0-m\0opencode_mcp"}, [], id="module"),
        pytest.param({7: f"{SERVER}\0serve", 30: SERVER}, ["serve"], id="the-oldest"),
        pytest.param({7: f"{SERVER}\0--config\0serve\0sessions\0list"}, None, id="another-command"),
        pytest.param({7: f"{SERVER}\0--config\0f\0serve"}, ["--config", "f", "serve"], id="config"),
        pytest.param({7: "python\0-m\0opencode_mcp.opencode.supervisor\0id"}, None, id="keeper"),
        pytest.param({1: "tini\0--\0opencode-mcp", 7: ""}, None, id="a-zombie"),
        pytest.param({1: "vim\0opencode-mcp"}, None, id="an-editor"),
    ],
)
def test_it_finds_the_server_of_its_container(
    tmp_path: Path, processes: dict[int, str], arguments: list[str] | None
) -> None:
    for pid, words in processes.items():
        (tmp_path / str(pid)).mkdir()
        line = f"{words}\0" if words else ""
        (tmp_path / str(pid) / "cmdline").write_text(line, encoding="utf-8")
    (tmp_path / "self").mkdir()
    (tmp_path / "99").mkdir()  # one that just ended
    assert healthcheck.server_arguments(str(tmp_path)) == arguments


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", "200", id="well"),
        pytest.param(b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "503", id="unwell"),
        pytest.param(b"", "nothing", id="hangs-up"),
    ],
)
def test_it_asks_and_tells_what_it_was_answered(answer: bytes, said: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        asked: list[bytes] = []

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                asked.append(connection.recv(1024))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert healthcheck.ask("127.0.0.1", listener.getsockname()[1]) == said
        thread.join(5)
        assert asked[0].startswith(b"GET /healthz HTTP/1.1\r\n")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str] | None], None]:
    """Let there be one server with these arguments, or none."""

    def make(arguments: list[str] | None) -> None:
        monkeypatch.setattr(healthcheck, "server_arguments", lambda: arguments)

    return make


def test_its_exit_code(
    alone: Callable[[list[str] | None], None], capsys: pytest.CaptureFixture[str]
) -> None:
    alone(None)
    assert healthcheck.main() == 1
    assert "no opencode-mcp serves" in capsys.readouterr().out
    alone([])
    assert healthcheck.main() == 0, "stdio"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    alone(["--transport", "http", "--host", "0.0.0.0", "--port", port])
    assert healthcheck.main() == 1
    assert f"http://127.0.0.1:{port}/healthz does not answer" in capsys.readouterr().out


def test_it_needs_no_library() -> None:
    """It runs every ten seconds: `-I -S` keeps site packages out, and it imports little."""
    before = set(sys.stdlib_module_names)
    names = {
        line.split()[1]
        for line in _FILE.read_text(encoding="utf-8").splitlines()
        if line.strip().startswith(("import ", "from "))
    }
    assert {name.partition(".")[0] for name in names} <= before
    assert "urllib.request" not in names

"""Start what a wheel installed: its version, its migrations, and its tools over stdio.

usage: python scripts/wheel_check.py VENV      (make wheel-test; VENV has only the wheel in it)

Runs in an empty folder with next to no environment, so that nothing of the checkout helps.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO

REPO = Path(__file__).resolve().parent.parent
TOOLS = {"opencode", "opencode-reply", "opencode-status", "opencode-end"}
DEADLINE_S = 60.0
_MIGRATIONS = """
import importlib.resources
folder = importlib.resources.files("opencode_mcp") / "migrations"
print(*sorted(file.name for file in folder.iterdir()))
"""


def main(venv: Path) -> None:
    """Check the three; exit with what was wrong."""
    with tempfile.TemporaryDirectory(prefix="opencode-mcp-wheel-") as scratch:
        project = Path(scratch, "project")
        project.mkdir()
        environ = {"PATH": os.environ["PATH"], "HOME": scratch, "LANG": "C.UTF-8"}
        check_version(venv, project, environ)
        check_migrations(venv, project, environ)
        check_tools(venv, project, environ)
    print("the wheel installs, starts and answers")


def check_version(venv: Path, cwd: Path, environ: dict[str, str]) -> None:
    """Compare what the command says with what the checkout says."""
    source = (REPO / "opencode_mcp" / "__init__.py").read_text(encoding="utf-8")
    wanted = re.search(r'__version__ = "(.+)"', source)
    said = run([venv / "bin" / "opencode-mcp", "--version"], cwd, environ).strip()
    if wanted is None or wanted[1] not in said.split():
        sys.exit(f"opencode-mcp --version says {said!r}, not {wanted and wanted[1]}")


def check_migrations(venv: Path, cwd: Path, environ: dict[str, str]) -> None:
    """Look for each SQL file of the checkout inside the installed package."""
    wanted = sorted(file.name for file in (REPO / "migrations").glob("*.sql"))
    found = run([venv / "bin" / "python", "-c", _MIGRATIONS], cwd, environ).split()
    if not wanted or wanted != [name for name in found if name.endswith(".sql")]:
        sys.exit(f"the wheel holds the migrations {found}, not {wanted}")


def check_tools(venv: Path, cwd: Path, environ: dict[str, str]) -> None:
    """Speak MCP with the server: initialize, then tools/list."""
    server = subprocess.Popen(
        [venv / "bin" / "opencode-mcp"],
        cwd=cwd,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    limit = threading.Timer(DEADLINE_S, server.kill)
    limit.start()
    try:
        if server.stdin is None or server.stdout is None:
            sys.exit("the server was started without pipes")
        params = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "wheel-check", "version": "0"},
        }
        ask(server.stdin, {"id": 1, "method": "initialize", "params": params})
        answer(server.stdout, 1)
        ask(server.stdin, {"method": "notifications/initialized"})
        ask(server.stdin, {"id": 2, "method": "tools/list"})
        listed = answer(server.stdout, 2)
        server.stdin.close()
        server.wait()
    finally:
        limit.cancel()
        server.kill()
        server.wait()
    tools = listed.get("tools")
    names = {tool["name"] for tool in tools} if isinstance(tools, list) else set()
    if not names >= TOOLS:
        sys.exit(f"the server offers {sorted(names)}, not {sorted(TOOLS)}")
    if server.returncode:
        sys.exit(f"the server ended with {server.returncode} after its input was closed")


def ask(pipe: IO[str], message: dict[str, object]) -> None:
    """Send one JSON-RPC message."""
    pipe.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    pipe.flush()


def answer(pipe: IO[str], request_id: int) -> dict[str, object]:
    """Return the result of a request; the server is killed at the deadline, which ends the wait."""
    for line in pipe:
        message = json.loads(line)
        if message.get("id") == request_id:
            if "result" not in message:
                sys.exit(f"the server refused request {request_id}: {message.get('error')}")
            result: dict[str, object] = message["result"]
            return result
    sys.exit(f"the server ended, or was silent for {DEADLINE_S:.0f} s, before answer {request_id}")


def run(command: list[str | Path], cwd: Path, environ: dict[str, str]) -> str:
    """Return a command's standard output; exit with its error if it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    if done.returncode:
        sys.exit(f"{command[0]} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())

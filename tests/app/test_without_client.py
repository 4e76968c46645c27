"""Started with streams that lead nowhere, or with libraries that print: the process itself."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.lines import INITIALIZE, WITHIN_S, environ
from tests.support.process_bridge import COMMAND

if TYPE_CHECKING:
    from pathlib import Path

#: what a library that greets the world does, at the moment it is imported
NOISE = """
import sys

class Noise:
    def find_spec(self, name, path=None, target=None):
        if name in {"aiohttp", "fastmcp", "mcp", "opencode_mcp.engine.engine"}:
            print("hello from", name, flush=True)

sys.meta_path.insert(0, Noise())
"""
#: what a library leaves for the very end
GOODBYE = """
import atexit, pathlib
atexit.register(pathlib.Path("goodbye").touch)
"""
STATUS = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "opencode-status", "arguments": {}},
}


def serve(redirect: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run it as a shell does with these redirections."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" {redirect}', str(COMMAND)],
        env=environ(folder, **more),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_S,
    )


@pytest.mark.parametrize("redirect", ["</dev/null", "<&-", "<&- >&-"])
def test_no_client_at_all_is_told_with_what_is_missing(redirect: str, tmp_path: Path) -> None:
    """Case B33: `docker run` without `-i`. A closed stdin must not be taken for another file."""
    done = serve(redirect, tmp_path)
    said = [json.loads(line) for line in done.stderr.splitlines()]
    (warning,) = [line for line in said if line["level"] == "WARNING"]
    assert warning["event"] == "no_client"
    assert "docker run -i" in warning["message"]
    assert "OPENCODE_MCP_TRANSPORT=http" in warning["message"]
    assert not [line for line in said if line["level"] == "ERROR"]
    assert done.returncode == 0
    assert done.stdout == ""


def test_without_any_stream_it_ends_all_the_same(tmp_path: Path) -> None:
    done = serve("<&- >&- 2>&-", tmp_path)
    assert done.returncode == 0


def test_what_a_library_prints_while_it_is_imported_is_not_for_the_client(tmp_path: Path) -> None:
    """Case 31. The engine is imported by the first call."""
    (tmp_path / "sitecustomize.py").write_text(NOISE, encoding="utf-8")
    lines = "".join(f"{json.dumps(message)}\n" for message in (INITIALIZE, STATUS))
    done = subprocess.run(
        [COMMAND],
        env=environ(tmp_path, PYTHONPATH=os.fspath(tmp_path)),
        cwd=tmp_path,
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_S,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert {answer["id"] for answer in answers} == {1, 2}
    for name in ("fastmcp", "aiohttp", "opencode_mcp.engine.engine"):
        assert f"hello from {name}" in done.stderr


def test_an_exit_does_not_wait_for_what_libraries_do_at_the_interpreters_end(
    tmp_path: Path,
) -> None:
    """Ours: the thread that keeps an exit in time does not run any more then."""
    (tmp_path / "sitecustomize.py").write_text(GOODBYE, encoding="utf-8")
    done = serve("</dev/null", tmp_path, PYTHONPATH=os.fspath(tmp_path))
    assert done.returncode == 0
    assert "server_stopping" in done.stderr
    assert not (tmp_path / "goodbye").exists()

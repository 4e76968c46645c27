"""The command that stands in for `codex mcp-server`, word for word as docs/codex.md gives it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.support.lines import INITIALIZE, WITHIN_S, environ
from tests.support.process_bridge import COMMAND

DOCS = Path(__file__).parents[2] / "docs" / "codex.md"
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


def test_the_command_of_the_documentation_lists_codex_tools(tmp_path: Path) -> None:
    (said,) = re.findall(r"^\+args = (.*)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    done = subprocess.run(
        [COMMAND, *json.loads(said)],
        env=environ(tmp_path),
        cwd=tmp_path,
        input="".join(f"{json.dumps(message)}\n" for message in (INITIALIZE, LIST)),
        capture_output=True,
        text=True,
        check=True,
        timeout=WITHIN_S,
    )
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    names = {tool["name"] for tool in answers[2]["result"]["tools"]}
    assert {"codex", "codex-reply", "opencode-end"} <= names

"""Processes that log: each of its own, since logging belongs to a whole process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}


def run(code: str) -> list[str]:
    """Run code after logging was set up as its first line says; return standard error's lines."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "", "standard output belongs to the protocol"
    return done.stderr.splitlines()


def run_json(code: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(code)]

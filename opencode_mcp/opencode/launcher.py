"""Starts a supervisor, which then belongs to nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from opencode_mcp.opencode_errors import OpencodeStartError

if TYPE_CHECKING:
    from opencode_mcp.opencode.orders import Orders

_MODULE = "opencode_mcp.opencode.supervisor"
#: it takes 0.2 s, and many times that on a machine that is busy starting everything at once
_LAUNCH_TIMEOUT_S = 30.0
#: what the supervisor itself inherits from us: enough to run Python, and no secret of ours
_ENV = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
_ENV_PREFIXES = ("PYTHON", "LC_")
_QUOTED_CHARS = 300


def launch(orders: Orders) -> None:
    """Start a supervisor and return when its record is there. Blocks. Raises OpencodeStartError."""
    try:
        launcher = subprocess.run(  # noqa: S603 - our own interpreter and module
            # its id is for people who read the process table; the orders are not for them
            [sys.executable, "-P", "-m", _MODULE, orders.instance_id],
            input=orders.to_json(),
            capture_output=True,
            env=own_environment(),
            cwd=orders.folder,
            start_new_session=True,
            timeout=_LAUNCH_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"the supervisor of OpenCode cannot be started: {type(error).__name__}"
        raise OpencodeStartError(message) from error
    if launcher.returncode != 0:
        last = launcher.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        message = f"the supervisor of OpenCode cannot be started: {last[:_QUOTED_CHARS]}"
        raise OpencodeStartError(message)


def own_environment() -> dict[str, str]:
    """Return what a process of our own code inherits: enough to run it, and no secret of ours."""
    env = {
        name: value
        for name, value in os.environ.items()
        if name in _ENV or name.startswith(_ENV_PREFIXES)
    }
    # the very code that runs here, wherever it was imported from; in the same order, so that
    # nothing is found elsewhere than we find it
    env["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry)
    return env

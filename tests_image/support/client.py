"""An MCP client as a process of its own, which a test can kill.

`python -m tests_image.support.client ARGV`: runs the container, begins a turn that does not end,
says so, and closes the container's stdin when its own ends.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import IO, Any

_HELLO: dict[str, object] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "mortal", "version": "1"},
}
_TURN: dict[str, object] = {
    "name": "opencode",
    "arguments": {"prompt": "SLOW:100000", "wait-seconds": 0},
}


def main(argv: list[str]) -> None:
    """Be that client."""
    server = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    _ask(server.stdin, server.stdout, 1, "initialize", _HELLO)
    answer = _ask(server.stdin, server.stdout, 2, "tools/call", _TURN)
    found = answer["result"]["structuredContent"]
    sys.stdout.write("the turn runs\n" if found["status"] == "running" else f"{found}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stdin.close()
    server.wait()


def _ask(
    to: IO[bytes], source: IO[bytes], identity: int, method: str, params: dict[str, object]
) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
    to.write(json.dumps(message).encode() + b"\n")
    to.flush()
    for line in source:
        answer: dict[str, Any] = json.loads(line)
        if answer.get("id") == identity:
            return answer
    sys.exit("the container ended before it answered")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

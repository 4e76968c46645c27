"""Programs that stand in for OpenCode: where it has to misbehave, or where any will do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: a program that comes up as OpenCode does, and does nothing else
IDLE = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"healthy": true, "version": "1.18.33"}')
    do_POST = do_GET
port = int(sys.argv[sys.argv.index("--port") + 1])
server = http.server.HTTPServer(("127.0.0.1", port), Handler)
print(f"opencode server listening on http://127.0.0.1:{port}", flush=True)
server.serve_forever()
"""
#: listens and answers as OpenCode does, and does not go when it is asked to
STUBBORN = f"""
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
{IDLE}
"""
#: says something, and never comes up
HANGS = """
import time
print("thinking about it", flush=True)
time.sleep(1000)
"""


def fake_opencode(path: Path, body: str) -> str:
    """Write a program that stands in for OpenCode where it has to misbehave."""
    path.write_text(f"#!{sys.executable}\n{body}", encoding="utf-8")
    path.chmod(0o700)
    return str(path)

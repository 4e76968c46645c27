"""One `opencode serve` that the supervisor started: its output, its health, its end.

Standard library only.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import signal
import subprocess
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from opencode_mcp.opencode.generation import UnsupportedServerError, checked_version
from opencode_mcp.opencode.instance_file import workdir_path
from opencode_mcp.opencode.processes import die_with_parent

if TYPE_CHECKING:
    from opencode_mcp.opencode.orders import Orders

USERNAME = "opencode"
#: what is kept to explain a failure: lines, and characters of each
_KEPT_LINES = 20
_KEPT_CHARS = 500
#: of a line that does not end; the rest of it is dropped
_MAX_LINE_BYTES = 64 * 1024
#: facts 12.1; or however another generation says where it listens
_READY_LINE = re.compile(r"listening on (http://\S+)|(http://(?:127\.0\.0\.1|localhost):\d+)")
#: OpenCode 2.x makes up a password of its own and prints it
_ITS_PASSWORD = re.compile(r"(server password:?)\s+\S+", re.IGNORECASE)
#: facts 12.2
_PORT_TAKEN = re.compile(r"ServeError|EADDRINUSE|in use")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
#: a shorter value would black out half of the text
_SECRET_CHARS = 6
#: health is 0.4 ms on an idle server (facts 11.2); it is asked again anyway
_HEALTH_TIMEOUT_S = 2.0
_MAX_ANSWER_BYTES = 64 * 1024
_CLOSED = -1


class _Answer(NamedTuple):
    status: int
    body: bytes


class ServerProcess:
    """Starts it. Raises OSError when the binary cannot be executed.

    `exit_code` is set by whoever reaps; `output_fd` is to be watched, and read by `read_output`.
    """

    def __init__(self, orders: Orders, port: int, password: str) -> None:
        self.url: str | None = None  # set by the ready line
        self.exit_code: int | None = None
        credentials = f"{USERNAME}:{password}".encode()
        self._authorization = f"Basic {base64.b64encode(credentials).decode()}"
        self._secrets = _secrets(orders, password)
        self._kept: deque[str] = deque(maxlen=_KEPT_LINES)
        self._unfinished = b""
        self.output_fd, output = os.pipe()
        os.set_blocking(self.output_fd, False)
        try:
            self._process = self._spawn(orders, port, password, output)
        except BaseException:
            self.close_output()
            raise
        finally:
            os.close(output)
        self.pid = self._process.pid

    @staticmethod
    def _spawn(orders: Orders, port: int, password: str, output: int) -> subprocess.Popen[bytes]:
        command = [orders.binary, "serve", *orders.args]
        return subprocess.Popen(  # noqa: S603 - the operator's choice
            [*command, "--hostname", "127.0.0.1", "--port", str(port)],
            env={
                **orders.env,
                "OPENCODE_SERVER_USERNAME": USERNAME,
                "OPENCODE_SERVER_PASSWORD": password,
            },
            cwd=workdir_path(orders.folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            close_fds=True,  # the lock of the instance is not for OpenCode to hold
            preexec_fn=die_with_parent(),  # noqa: PLW1509 - the supervisor has one thread
        )

    def ended(self, exit_code: int) -> None:
        """Take note that it was reaped."""
        self.exit_code = self._process.returncode = exit_code

    def read_output(self) -> bool:
        """Take in what it has written since. False: nobody can write any more."""
        while self.output_fd != _CLOSED:
            try:
                chunk = os.read(self.output_fd, _MAX_LINE_BYTES)
            except BlockingIOError:
                return True
            *complete, rest = (self._unfinished + chunk).split(b"\n")
            for line in complete:
                self._line(line)
            self._unfinished = rest[:_MAX_LINE_BYTES]
            if not chunk:
                self._line(self._unfinished)
                self._unfinished = b""
                return False
        return False

    def close_output(self) -> None:
        """Stop listening: `read_output` returned False."""
        if self.output_fd != _CLOSED:
            os.close(self.output_fd)
            self.output_fd = _CLOSED

    def last_lines(self) -> tuple[str, ...]:
        """Return what it wrote last, without secrets."""
        return tuple(self._redacted(line)[:_KEPT_CHARS] for line in self._kept)

    def port_was_taken(self) -> bool:
        """Tell whether it said so. True may be wrong, and then another port fails as well."""
        return any(_PORT_TAKEN.search(line) for line in self._kept)

    def version(self) -> str | None:
        """Ask for its health and return its version; None: not ready yet. At most about 2 s.

        Raises UnsupportedServerError: it is up, and answers as no OpenCode of ours does.
        """
        answer = self._ask("GET", "/global/health", _HEALTH_TIMEOUT_S)
        if answer is None or answer.status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
            return None
        if answer.status != http.HTTPStatus.OK:
            message = f"it answers {answer.status} on /global/health"
            raise UnsupportedServerError(message)
        try:
            return checked_version(json.loads(answer.body))
        except ValueError:
            message = "its answer on /global/health is no JSON"
            raise UnsupportedServerError(message) from None

    def dispose(self, timeout_s: float) -> None:
        """Have it end all runs cleanly (facts 9.5), if it still can."""
        if self.exit_code is None:  # or somebody else may listen there by now
            self._ask("POST", "/global/dispose", timeout_s)

    def terminate(self) -> None:
        """Ask it to exit: it does in 90 ms, without any cleaning up (facts 9.4)."""
        if self.exit_code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def _ask(self, method: str, path: str, timeout_s: float) -> _Answer | None:
        if self.url is None:
            return None
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=timeout_s)
        try:
            connection.request(method, path, headers={"Authorization": self._authorization})
            response = connection.getresponse()
            return _Answer(response.status, response.read(_MAX_ANSWER_BYTES))
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def _line(self, content: bytes) -> None:
        line = _COLOURS.sub("", content.decode(errors="replace")).strip()
        if not line:
            return
        self._kept.append(line)
        if self.url is None and (ready := _READY_LINE.search(line)):
            self.url = (ready[1] or ready[2]).rstrip("/")

    def _redacted(self, line: str) -> str:
        for secret in self._secrets:
            line = line.replace(secret, "***")
        return _ITS_PASSWORD.sub(r"\1 ***", line)


def _secrets(orders: Orders, password: str) -> list[str]:
    """Return what must not be quoted: the password, and the values of variables named like one."""
    values = [value for name, value in orders.env.items() if _SECRET_NAME.search(name)]
    return [password, *(value for value in values if len(value) >= _SECRET_CHARS)]

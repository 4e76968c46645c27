"""The image's health check: exit code 0 when the server that this container runs is well.

Over stdio it is well as long as its process is there: there is no port to ask. Over HTTP it is well
when `/healthz` says so. Which of the two, and where, is said by the server's own command line, the
environment, or the configuration file: in that order, as in `opencode_mcp/settings_env.py`.

Runs every ten seconds for the life of a container, so: the standard library's smallest part only,
and no site packages (`python -I -S`), which makes 20 ms of what would be 500.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence  # noqa: TC003 - costs nothing

_PREFIX = "OPENCODE_MCP_"
_PATH = "/healthz"
_TIMEOUT_S = 3.0
#: what the settings say where nobody else does
_DEFAULTS = {"transport": "stdio", "host": "127.0.0.1", "port": "8000"}
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not listened at


def main() -> int:
    """Look at this container's server; say what is wrong, if anything."""
    arguments = server_arguments()
    if arguments is None:
        return _unwell("no opencode-mcp serves in this container")
    found = settings(arguments, os.environ)
    if found["transport"] != "http":
        return 0
    host = _ANY_ADDRESS.get(found["host"], found["host"])
    try:
        status = ask(host, int(found["port"]))
    except (OSError, ValueError) as error:
        return _unwell(f"http://{host}:{found['port']}{_PATH} does not answer: {error}")
    return 0 if status == "200" else _unwell(f"{_PATH} answers {status}")


def server_arguments(processes: str = "/proc") -> list[str] | None:
    """Return the arguments of the oldest process that serves; None: there is none.

    The oldest: others may have been started beside it by `docker exec`.
    """
    pids = sorted(int(name) for name in os.listdir(processes) if name.isdecimal())
    for pid in pids:
        try:
            with open(f"{processes}/{pid}/cmdline", "rb") as file:
                words = file.read().decode("utf-8", "replace").split("\0")[:-1]
        except OSError:  # it just ended
            continue
        arguments = _of_ours(words)
        if arguments is not None and _serves(arguments):
            return arguments
    return None


def _of_ours(words: Sequence[str]) -> list[str] | None:
    """Return what was given to our command; None: it is another program. A zombie has no words."""
    for end in (1, 2):
        if len(words) > end and os.path.basename(words[end - 1]).startswith("python"):
            if os.path.basename(words[end]) == "opencode-mcp":
                return list(words[end + 1 :])
            if words[end] == "-m" and words[end + 1 : end + 2] == ["opencode_mcp"]:
                return list(words[end + 2 :])
    return None


def _serves(arguments: Sequence[str]) -> bool:
    """Tell whether that command is `serve`, which is also what it does without one."""
    is_value = False
    for word in arguments:
        if is_value or word.startswith("-"):
            is_value = not is_value and word == "--config"
            continue
        return word == "serve"
    return True


def settings(arguments: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return transport, host and port in force."""
    found = dict(_DEFAULTS)
    found.update(_from_file(option(arguments, "config"), environ))
    for name in found:
        value = option(arguments, name) or environ.get(_PREFIX + name.upper())
        if value:
            found[name] = value
    return {name: value.strip().lower().strip("[]") for name, value in found.items()}


def option(arguments: Sequence[str], name: str) -> str:
    """Return the value of `--name value` or `--name=value`, or ""."""
    value = ""
    for index, word in enumerate(arguments):
        if word == f"--{name}":
            value = arguments[index + 1] if index + 1 < len(arguments) else ""
        elif word.startswith(f"--{name}="):
            value = word.partition("=")[2]
    return value


def _from_file(named: str, environ: Mapping[str, str]) -> dict[str, str]:
    folder = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '')}/.config"
    path = named or environ.get(f"{_PREFIX}CONFIG") or f"{folder}/opencode-mcp/config.toml"
    try:
        with open(path, "rb") as file:
            import tomllib  # noqa: PLC0415 - most containers have no such file

            data = tomllib.load(file)
    except (OSError, ValueError):  # the server itself says what is wrong with it
        return {}
    return {name: str(data[name]) for name in _DEFAULTS if data.get(name) not in (None, "")}


def ask(host: str, port: int) -> str:
    """Return the status of an answer to GET /healthz."""
    with socket.create_connection((host, port), timeout=_TIMEOUT_S) as connection:
        request = f"GET {_PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        words = connection.recv(64).decode("latin-1").split()
    return words[1] if len(words) > 1 else "nothing"


def _unwell(why: str) -> int:
    sys.stdout.write(f"{why}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())

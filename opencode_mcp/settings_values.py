"""How one setting's text becomes its value: pure parsers that raise ValueError.

The error's text is shown to the operator behind the setting's name and value: it begins with
"must", tells what is allowed, and never repeats the value.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOOPBACK = "127.0.0.1"
DEFAULT_PORTS = {"http": 80, "https": 443}
#: a pattern
HOST_NAME = r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?"
#: `opencode serve` options that are ours to choose, and yargs' other spellings of them
_OUR_SERVE_OPTIONS = ("--hostname", "--port", "--mdns", "--cors", "--no-mdns", "--no-cors")
_CHILD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[A-Za-z][A-Za-z0-9_]*_\*", re.ASCII)
#: what OpenCode must never get: our settings, and the password it is started with
NEVER_FOR_CHILD = ("OPENCODE_MCP_", "OPENCODE_SERVER_")
_MODEL = re.compile(r"[^/\s]+/\S+")


def server_url(text: str) -> str:
    """Return an OpenCode's address in its one spelling, so that equal addresses are equal texts.

    `localhost`, `127.0.0.1` and `[::1]` are one; default ports and a trailing slash go; a path
    prefix stays. User info, query and fragment are refused: they would end up in logs.
    """
    if any(char <= " " or char in "\\\x7f" for char in text):
        msg = "must be one http:// or https:// address, without spaces"
        raise ValueError(msg)
    parts = _split(text)
    if "@" in parts.netloc:
        msg = "must hold no user name or password: OPENCODE_MCP_SERVER_USERNAME and _PASSWORD do"
        raise ValueError(msg)
    if "?" in text or "#" in text:
        msg = "must hold neither a query nor a fragment"
        raise ValueError(msg)
    if parts.netloc.startswith("[v"):
        msg = "must hold an IPv6 address between its brackets"
        raise ValueError(msg)
    host, path = _host(parts.hostname or ""), parts.path.rstrip("/")
    if {".", ".."} & set(path.split("/")):
        msg = "must hold no `.` or `..` in its path"
        raise ValueError(msg)
    return f"{parts.scheme}://{host}{_port(parts)}{path}"


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        named = parts.scheme in DEFAULT_PORTS and bool(parts.hostname)
    except ValueError:  # brackets that hold no address
        named = False
    if not named:
        msg = "must begin with http:// or https:// and name a host"
        raise ValueError(msg)
    return parts


def _host(name: str) -> str:
    if ":" in name:  # IPv6; urlsplit took the brackets off
        try:
            address = ipaddress.IPv6Address(name)
        except ValueError:
            msg = "must hold an IPv6 address between its brackets"
            raise ValueError(msg) from None
        return LOOPBACK if address.is_loopback else f"[{address.compressed}]"
    if not re.fullmatch(HOST_NAME, name.removesuffix("."), re.ASCII):
        msg = "must name a host by letters, digits, dots and hyphens, or by its address"
        raise ValueError(msg)
    return LOOPBACK if name.rstrip(".") == "localhost" else name


def _port(parts: SplitResult) -> str:
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port is None or port == DEFAULT_PORTS[parts.scheme]:
        return ""
    if not port:
        msg = "must have a port from 1 to 65535"
        raise ValueError(msg)
    return f":{port}"


def is_loopback(url: str) -> bool:
    """Say whether a normalised address cannot leave this machine."""
    return is_loopback_host(urlsplit(url).hostname or "")


def is_loopback_host(host: str) -> bool:
    """Say whether a name or address means this machine, and nobody else can reach it there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def user_name(text: str) -> str:
    """Return a name for Basic authentication, which ends at the first colon."""
    if not text or ":" in text or not text.isprintable():
        msg = "must be a name without colons and control characters"
        raise ValueError(msg)
    return text


def plain_name(text: str) -> str:
    """Return the name of a program, agent or model: printable, not blank at either end."""
    if not text or text != text.strip() or not text.isprintable():
        msg = "must be printable, without blanks at either end"
        raise ValueError(msg)
    return text


def model_name(text: str) -> str:
    """Return `provider/model`; the model's own part may hold further slashes."""
    if not _MODEL.fullmatch(text):
        msg = "must be provider/model, for example anthropic/claude-sonnet-4-5"
        raise ValueError(msg)
    return plain_name(text)


def absolute_path(path: Path) -> Path:
    """Return the path if it means the same from everywhere."""
    if not path.is_absolute() or "\0" in str(path):
        msg = "must be an absolute path (`~` and variables are not expanded)"
        raise ValueError(msg)
    return path


def absolute_paths(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the paths if each of them is absolute."""
    return tuple(absolute_path(path) for path in paths)


def shell_words(value: object) -> object:
    """Split text as a POSIX shell does; a list (TOML) stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError:
        msg = "must be shell words with every quote closed"
        raise ValueError(msg) from None


def serve_args(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return arguments for `opencode serve` that leave its address to us."""
    for word in words:
        if word.startswith(_OUR_SERVE_OPTIONS):
            msg = "must not choose hostname, port, mdns or cors: this program does"
            raise ValueError(msg)
        if "\0" in word:
            msg = "must hold no NUL character"
            raise ValueError(msg)
    return words


def child_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of variables, or `PREFIX_*`, that OpenCode may have besides the usual ones."""
    for name in names:
        if not _CHILD_NAME.fullmatch(name):
            msg = "must be names of variables, or PREFIX_*, separated by commas"
            raise ValueError(msg)
        if name.startswith(NEVER_FOR_CHILD):
            msg = "must name no OPENCODE_MCP_* or OPENCODE_SERVER_* variable"
            raise ValueError(msg)
    return names


def split_at(separator: str) -> Callable[[object], object]:
    """Return a parser that cuts text at `separator`, trims the parts and drops the empty ones."""

    def split(value: object) -> object:
        if not isinstance(value, str):
            return value
        return [part.strip() for part in value.split(separator) if part.strip()]

    return split


comma_list = split_at(",")
path_list = split_at(os.pathsep)


def lower_case(value: object) -> object:
    """Return text in lower case: choices are taken in any case."""
    return value.strip().lower() if isinstance(value, str) else value


def no_boolean(value: object) -> object:
    """Turn TOML's `true` into text, which is no number; pydantic alone would take it as 1."""
    return str(value) if isinstance(value, bool) else value

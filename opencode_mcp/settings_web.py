"""How the text of a setting about HTTP callers becomes its value; see `settings_values`."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from opencode_mcp.records import ANONYMOUS, LOCAL
from opencode_mcp.settings_values import DEFAULT_PORTS, HOST_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

#: what a browser page from elsewhere cannot make its requests look like
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
#: answered by this server itself
OWN_PATHS = ("/healthz", "/readyz", "/metrics")
_LEAST_TOKEN_CHARS = 16
_TOKEN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_TOKEN = re.compile(r"[\x21-\x7e]+", re.ASCII)
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+", re.ASCII)
_PORT = r"(:(\*|[1-9][0-9]{0,4}))?"
_HOST = re.compile(rf"\*|((\*\.)?{HOST_NAME}|\[[0-9a-f:.]+\]){_PORT}", re.ASCII)


@dataclass(frozen=True, slots=True)
class NamedToken:
    """A bearer token and the name of who has it; never shown."""

    name: str
    token: str

    def __repr__(self) -> str:
        """Return the name alone: a representation ends up in logs."""
        return f"NamedToken({self.name!r})"


def named_tokens(entries: object) -> object:
    """Return `name:token` entries as tokens. No text of a ValueError quotes one."""
    if not isinstance(entries, list | tuple):
        msg = "must be name:token, separated by commas"
        raise ValueError(msg)  # noqa: TRY004 - pydantic shows what is a ValueError
    if entries and all(isinstance(entry, NamedToken) for entry in entries):
        return entries
    tokens = parse_tokens([str(entry) for entry in entries])
    if not tokens:  # without tokens anybody is let in: nobody shall mean that by a comma
        msg = "must hold at least one name:token"
        raise ValueError(msg)
    return tokens


def parse_tokens(entries: Sequence[str], *, what: str = "entry") -> tuple[NamedToken, ...]:
    """Return one token for each `name:token`.

    Raises ValueError, which quotes neither half: they may stand the wrong way round.
    """
    tokens = tuple(_token(entry, f"{what} {n}") for n, entry in enumerate(entries, 1) if entry)
    names = [token.name for token in tokens]
    if len(set(names)) < len(names):
        twice = next(n for n, name in enumerate(names, 1) if name in names[: n - 1])
        msg = f"must name each principal once; token {twice} has the name of one before it"
        raise ValueError(msg)
    if len({token.token for token in tokens}) < len(tokens):
        msg = "must give each name a token of its own; two are the same"
        raise ValueError(msg)
    return tokens


def _token(entry: str, where: str) -> NamedToken:
    name, colon, token = entry.strip().partition(":")
    if not colon or not _TOKEN_NAME.fullmatch(name):
        msg = (
            f"must be name:token, the name of letters, digits, dots, hyphens and underscores;"
            f" {where} is not"
        )
        raise ValueError(msg)
    if len(token) < _LEAST_TOKEN_CHARS or not _TOKEN.fullmatch(token):
        msg = (
            f"must hold tokens of at least {_LEAST_TOKEN_CHARS} printable ASCII characters without"
            f" blanks, behind the name; {where} does not"
        )
        raise ValueError(msg)
    return NamedToken(name, token)


def principals(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of principals as contract §1 writes them."""
    for name in names:
        kind, colon, rest = name.partition(":")
        if name in {LOCAL, ANONYMOUS}:
            continue
        if not colon or kind != "token" or not _TOKEN_NAME.fullmatch(rest):
            msg = "must be principals: token:<name>, local or anonymous, separated by commas"
            raise ValueError(msg)
    return names


def listening_host(text: str) -> str:
    """Return a name or address to listen at, without brackets."""
    host = text.strip().lower().removeprefix("[").removesuffix("]")
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        if re.fullmatch(HOST_NAME, host):
            return host
    msg = "must be a host name or an IP address, without a port"
    raise ValueError(msg)


def http_path(text: str) -> str:
    """Return the path of the MCP endpoint."""
    path = text.rstrip("/")
    if not _PATH.fullmatch(path) or {".", ".."} & set(path.split("/")):
        msg = "must begin with / and hold only letters, digits, dots, hyphens and slashes"
        raise ValueError(msg)
    if path in OWN_PATHS:
        msg = f"must be none of {', '.join(OWN_PATHS)}: these are there already"
        raise ValueError(msg)
    return path


def host_patterns(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the hosts that requests may name, in lower case."""
    lowered = tuple(name.lower() for name in names)
    for name in lowered:
        if not _HOST.fullmatch(name):
            msg = (
                "must be host names or addresses (IPv6 in brackets), each with a port or without;"
                " no scheme and no path"
            )
            raise ValueError(msg)
    return lowered


def origins(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the origins whose pages may call, as browsers send them."""
    found = []
    for text in texts:
        origin = text.lower().rstrip("/")
        try:
            parts = urlsplit(origin)
            fits = bool(parts.hostname) and parts.port != 0
        except ValueError:
            fits = False
        if not fits or origin != f"{parts.scheme}://{parts.netloc}" or "@" in parts.netloc:
            msg = "must be addresses such as https://chat.example.org, without a path"
            raise ValueError(msg)
        # browsers leave out the port that the scheme means
        port = DEFAULT_PORTS.get(parts.scheme)
        found.append(origin.removesuffix(f":{port}"))
    return tuple(found)

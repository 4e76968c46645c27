"""What an answer that is no success means: one mapping from status to error, without I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, ValidationError

from opencode_mcp.opencode_errors import (
    OpencodeError,
    OpencodeFailedError,
    OpencodeNotFoundError,
    OpencodeOverloadedError,
    OpencodeProtocolError,
    OpencodeRefusedError,
    OpencodeUnauthorizedError,
    OpencodeUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_BY_STATUS: Mapping[int, type[OpencodeError]] = MappingProxyType(
    {
        HTTPStatus.UNAUTHORIZED: OpencodeUnauthorizedError,
        HTTPStatus.FORBIDDEN: OpencodeUnauthorizedError,
        HTTPStatus.NOT_FOUND: OpencodeNotFoundError,
        HTTPStatus.TOO_MANY_REQUESTS: OpencodeOverloadedError,
        HTTPStatus.BAD_GATEWAY: OpencodeUnavailableError,
        HTTPStatus.SERVICE_UNAVAILABLE: OpencodeUnavailableError,
        HTTPStatus.GATEWAY_TIMEOUT: OpencodeUnavailableError,
    }
)

_CLIENT_FAULT = 400
_SERVER_FAULT = 500

#: an error's name is a word of OpenCode's program; anything else would be content
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Which error an answer is, what to say, and whether the request may have had an effect."""

    kind: type[OpencodeError]
    text: str
    may_have_acted: bool


class _ErrorBody(BaseModel):
    """Two of the three error shapes; the third is an empty body (facts 8.3)."""

    name: str = ""
    tag: str = Field(default="", alias="_tag")


def error_tag(body: bytes) -> str:
    """Return the name that OpenCode gives to an error, or "" if the body is not one of its own."""
    try:
        read = _ErrorBody.model_validate_json(body)
    except ValidationError:
        return ""
    tag = read.name or read.tag
    return tag if _NAME.fullmatch(tag) else ""


def refusal(status: int, tag: str) -> Refusal:
    """Judge an answer that is no success; `tag`: what `error_tag` found in its body, if JSON.

    A 404 without OpenCode's own words is a proxy's or another program's, and says nothing about
    whether the thing exists. A success of another kind, such as the web app's page for an unknown
    route (facts 8.2), is an answer we cannot read.
    """
    said = f"{status} {tag}".rstrip()
    if status < _CLIENT_FAULT:
        is_success = status < HTTPStatus.MULTIPLE_CHOICES
        fault = "not the kind of answer expected" if is_success else "redirects are not followed"
        return Refusal(OpencodeProtocolError, f"{said}, {fault}", may_have_acted=is_success)
    if status == HTTPStatus.NOT_FOUND and not tag:
        return Refusal(OpencodeProtocolError, f"{said}, not by OpenCode", may_have_acted=False)
    if status < _SERVER_FAULT:
        kind = _BY_STATUS.get(status, OpencodeRefusedError)
        return Refusal(kind, said, may_have_acted=False)
    return Refusal(_BY_STATUS.get(status, OpencodeFailedError), said, may_have_acted=True)


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Read a `Retry-After`, in seconds or as a date; None where it is absent or senseless."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        return max((parsedate_to_datetime(value) - now).total_seconds(), 0.0)
    except (ValueError, TypeError):  # TypeError: a date without a zone
        return None

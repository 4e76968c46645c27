"""Why a message failed. OpenCode's record repeats the provider's headers and body (facts 8.4).

Only what is read here is kept, so that none of the rest can ever be passed on.
"""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from opencode_mcp.opencode.fields import TEXT_CHARS, FromOpencode

if TYPE_CHECKING:
    from datetime import datetime

_HEADERS = frozenset({"retry-after", "retry-after-ms", "date"})
_HEADER_CHARS = 100


def _known(value: object) -> object:
    """Keep the message, the status, whether it may pass, and three headers."""
    if not isinstance(value, dict):
        return {}
    kept: dict[str, Any] = {}
    if isinstance(value.get("message"), str):
        kept["message"] = value["message"][:TEXT_CHARS]
    if type(value.get("statusCode")) is int:
        kept["statusCode"] = value["statusCode"]
    kept["isRetryable"] = value.get("isRetryable") is True
    headers = value.get("responseHeaders")
    if isinstance(headers, dict):
        kept["responseHeaders"] = {
            name.lower(): text[:_HEADER_CHARS]
            for name, text in headers.items()
            if isinstance(text, str) and name.lower() in _HEADERS
        }
    return kept


class MessageError(FromOpencode):
    """A message's `error`; the names are those of OpenCode's `/doc`."""

    name: str
    data: Annotated[dict[str, Any], BeforeValidator(_known)] = Field(default_factory=dict)

    @property
    def message(self) -> str:
        """The error's own text, or its name."""
        text: str = self.data.get("message", "")
        return text or self.name

    @property
    def status_code(self) -> int | None:
        """The provider's HTTP status, where there is one."""
        code: int | None = self.data.get("statusCode")
        return code

    @property
    def is_retryable(self) -> bool:
        """Whether OpenCode holds that the fault may pass."""
        return self.data.get("isRetryable") is True

    def retry_after_s(self, at: datetime) -> float | None:
        """How long the provider asked to wait, in seconds from the fault; None: it did not say.

        A date (RFC 9110 §10.2.3) is taken against the answer's own `Date`, else against `at`.
        """
        headers: dict[str, str] = self.data.get("responseHeaders", {})
        ms = _number(headers.get("retry-after-ms"))
        if ms is not None:
            return ms / 1000
        asked = headers.get("retry-after")
        seconds = _number(asked)
        if seconds is not None or asked is None:
            return seconds
        until = _date(asked)
        return None if until is None else _distance_s(_date(headers.get("date")) or at, until)


def _number(text: str | None) -> float | None:
    """Return a count of seconds or milliseconds; None for anything else, and for a negative one."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _date(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _distance_s(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds())

"""What goes wrong on OpenCode's side; the tree is told in `errors`."""

from __future__ import annotations

from opencode_mcp.errors import OpencodeMcpError


class OpencodeError(OpencodeMcpError):
    """OpenCode did not do what it was asked.

    `outcome_unknown` is true when a change may have taken effect although no good answer came.
    `retry_after_s` is the server's `Retry-After` in seconds, or None.
    """

    name = "UPSTREAM_ERROR"

    def __init__(  # noqa: PLR0913 - each is a fact about the failed call, all by keyword
        self,
        message: str,
        *,
        method: str = "",
        path: str = "",
        status: int | None = None,
        outcome_unknown: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.method = method
        self.path = path
        self.status = status
        self.outcome_unknown = outcome_unknown
        self.retry_after_s = retry_after_s


class OpencodeUnavailableError(OpencodeError, ConnectionError):
    """OpenCode cannot be reached, or its proxy answers 502, 503 or 504."""

    name = "OPENCODE_UNAVAILABLE"
    retryable = True


class OpencodeTimeoutError(OpencodeUnavailableError, TimeoutError):
    """OpenCode took the connection and did not answer in time."""


class OpencodeStartError(OpencodeUnavailableError):
    """A managed OpenCode did not come up; the text quotes its last lines."""


class OpencodeOverloadedError(OpencodeError):
    """OpenCode answered 429."""

    name = "OPENCODE_OVERLOADED"
    retryable = True


class OpencodeUnauthorizedError(OpencodeError):
    """OpenCode refused our user name or password: 401 or 403."""

    name = "OPENCODE_UNAUTHORIZED"


class OpencodeNotFoundError(OpencodeError):
    """OpenCode answered 404 with a JSON body: it does not know that thing."""


class OpencodeRefusedError(OpencodeError):
    """OpenCode answered another 4xx: a bug of ours, or a version we do not know."""


class OpencodeFailedError(OpencodeError):
    """OpenCode answered 500."""

    retryable = True


class OpencodeProtocolError(OpencodeError):
    """OpenCode's answer cannot be read: not JSON (facts 8.2), cut short, or another shape."""


class OpencodeUnsupportedError(OpencodeError):
    """What answers there is not an OpenCode that this program can drive."""

    name = "OPENCODE_UNSUPPORTED"


class ResponseTooLargeError(OpencodeError):
    """OpenCode's answer is larger than the limit for that kind of call."""

    name = "UPSTREAM_RESPONSE_TOO_LARGE"

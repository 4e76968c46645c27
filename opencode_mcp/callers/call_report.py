"""One line in the log and one count for each tool call that is over, however it ended."""

from __future__ import annotations

import logging
import secrets
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from opencode_mcp import metrics
from opencode_mcp.errors import InvalidArgumentError
from opencode_mcp.log_events import Event, concerning, tell

if TYPE_CHECKING:
    from types import TracebackType

    from fastmcp import Context

    from opencode_mcp.callers.wire import Result
    from opencode_mcp.errors import OpencodeMcpError

log = logging.getLogger(__name__)

#: the name of whatever tool is none of ours
OTHER = metrics.OTHER

#: of what a client says about itself
_CLIENT_CHARS = 50
#: of an id that a caller sent (contract §2)
_ID_CHARS = 100


class CallReport:
    """A context manager around one call: what is logged meanwhile names the call.

    A call that is left without a result was cancelled by its client.
    """

    def __init__(self, tool: str, owner: str, context: Context | None) -> None:
        """`tool`: one of ours, or `OTHER`. `context`: of the call, if it got that far."""
        self._tool = tool
        self._owner = owner
        self._client = _client_of(context)
        self._began = time.monotonic()
        self._result = metrics.CANCELLED
        self._fields: dict[str, object] = {"status": metrics.CANCELLED}
        self._why: str | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        # ours, since over HTTP many clients call their first request 1
        ids = {"tool": self._tool, "call_id": secrets.token_hex(6), "owner": self._owner}
        self._stack.enter_context(concerning(**ids))
        return self

    def concerns(self, session_id: str | None) -> None:
        """Name the session that the caller means, as they named it."""
        if session_id is not None:
            self._stack.enter_context(concerning(session_id=session_id[:_ID_CHARS]))

    def refused(self, error: OpencodeMcpError) -> None:
        """Keep why, unless it is about what the caller sent: that may quote an ask's choices."""
        if not isinstance(error, InvalidArgumentError):
            self._why = str(error)

    def over(self, result: Result) -> None:
        """Take down what the call is answered with."""
        error = result.get("error")
        self._result = metrics.OK if error is None else error["name"]
        self._fields = {
            "status": result["status"],
            "error_name": None if error is None else error["name"],
            "turn_id": result.get("turnId"),
        }
        if "sessionId" in result:
            self._fields["session_id"] = result["sessionId"][:_ID_CHARS]

    def over_for_input(self) -> None:
        """Take down that the client is to ask a person, and to call again."""
        self._result = metrics.INPUT_REQUIRED
        self._fields = {"status": metrics.INPUT_REQUIRED}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        elapsed_s = time.monotonic() - self._began
        metrics.tool_call_over(self._tool, self._result, elapsed_s)
        elapsed_ms = round(elapsed_s * 1000)
        more = {**self._client, "why": self._why}
        tell(log, Event.CALL_OVER, **self._fields, elapsed_ms=elapsed_ms, **more)
        self._stack.close()


def _client_of(context: Context | None) -> dict[str, object]:
    """Return what the client says about itself, if it does."""
    params = None if context is None else context.session.client_params
    if params is None or params.client_info is None:
        return {}
    info = params.client_info
    return {"client": info.name[:_CLIENT_CHARS], "client_version": info.version[:_CLIENT_CHARS]}

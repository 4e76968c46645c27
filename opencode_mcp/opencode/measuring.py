"""How long OpenCode takes: each try of a request is counted and measured (`metrics.py`)."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opencode_mcp import metrics
from opencode_mcp.opencode.calls import ROUTES
from opencode_mcp.opencode_errors import (
    OpencodeError,
    OpencodeTimeoutError,
    OpencodeUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opencode_mcp.clock import Clock
    from opencode_mcp.opencode.calls import Call

_REFUSALS = {4: "4xx", 5: "5xx"}

metrics.offer_routes({route: kind.name.lower() for route, kind in ROUTES.items()})


@contextmanager
def measured(call: Call, clock: Clock, deadline: float) -> Iterator[None]:
    """Count the try that the block makes. `deadline`: when it is given up (monotonic seconds)."""
    began = clock.monotonic()
    result = metrics.OK
    try:
        yield
    except OpencodeError as error:
        result = _result_of(error)
        raise
    except asyncio.CancelledError:
        # the budget of the request is kept by cancelling its try
        result = "timeout" if clock.monotonic() >= deadline else "abandoned"
        raise
    finally:
        metrics.request_over(call.kind.name.lower(), call.route, result, clock.monotonic() - began)


def _result_of(error: OpencodeError) -> str:
    if error.status is not None:
        return _REFUSALS.get(error.status // 100, "unreadable")
    if isinstance(error, OpencodeTimeoutError):
        return "timeout"
    return "unreachable" if isinstance(error, OpencodeUnavailableError) else "unreadable"

"""What the tests of the one door to HTTP share: a call of each kind, a client, and its failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opencode_mcp.opencode.calls import Call, CallKind
from opencode_mcp.opencode.http import Http
from opencode_mcp.opencode_errors import OpencodeError
from tests.opencode.fake_server import says_nothing

if TYPE_CHECKING:
    from tests.opencode.fake_server import QuickClock

READ = Call(CallKind.READ, "GET", "/thing")
CHANGE = Call(CallKind.CHANGE, "POST", "/thing", body=b"{}")
SUBMISSION = Call(CallKind.SUBMISSION, "POST", "/thing", body=b"{}")

SECRET = "sesame-7f3a"
NAMED = {"name": "SomeError", "data": {"message": f"upstream says {SECRET}"}}

unavailable = says_nothing(503)


def http_client(url: str, clock: QuickClock, *, limit_s: float = 10.0) -> Http:
    """Make a client of that address, which gives no call more than `limit_s`."""
    return Http(url, username="opencode", password=SECRET, limit_s=limit_s, clock=clock)


async def failure(http: Http, call: Call, timeout_s: float | None = None) -> OpencodeError:
    """Return the error that the call ends with."""
    with pytest.raises(OpencodeError) as caught:
        await http.send(call, timeout_s=timeout_s)
    return caught.value

"""The one place that talks HTTP to an OpenCode, and the only importer of aiohttp and tenacity.

A request has one time budget, tries and pauses included, and ends in an `Answer` or in an error
of the `OpencodeError` tree. Which tries there are depends on the kind of the call alone:

    READ, CHANGE   may happen twice, so they are tried again when OpenCode is unreachable,
                   overloaded or failing
    SUBMISSION     creates something: tried again only if the connection was never made, so that
                   provably no byte left. Otherwise the error says `outcome_unknown`

No error text holds a body, a header, a query or a credential.
"""

from __future__ import annotations

import asyncio
import io
import logging
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
import tenacity
from yarl import URL

from opencode_mcp.log_events import Event, tell
from opencode_mcp.metrics import request_repeated
from opencode_mcp.opencode.answers import error_tag, refusal, retry_after_s
from opencode_mcp.opencode.calls import Answer, Call, CallKind, decode
from opencode_mcp.opencode.gathering import gathered
from opencode_mcp.opencode.measuring import measured
from opencode_mcp.opencode_errors import (
    OpencodeError,
    OpencodeFailedError,
    OpencodeOverloadedError,
    OpencodeProtocolError,
    OpencodeTimeoutError,
    OpencodeUnavailableError,
    ResponseTooLargeError,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType

    from pydantic import TypeAdapter

    from opencode_mcp.clock import Clock

log = logging.getLogger(__name__)

T = TypeVar("T")

#: an error's body is read only for the name of the error
_ERROR_MAX_BYTES = 64 * 1024

_MAX_TRIES = 3
_BACKOFF = tenacity.wait_exponential(multiplier=0.1, max=2.0) + tenacity.wait_random(0.0, 0.1)
#: of what is left of the budget, so that "could not connect" is told from "did not answer"
_CONNECT_SHARE = 0.8


class Http:
    """An async context manager that owns the connections to one OpenCode."""

    def __init__(
        self, base_url: str, *, username: str, password: str | None, limit_s: float, clock: Clock
    ) -> None:
        """`limit_s`: the longest a request may take, all tries together."""
        self.base_url = base_url.rstrip("/")
        self._limit_s = limit_s
        self._clock = clock
        # Asking for plain bodies spares both sides the gzip of every longer answer.
        self._headers = {"Accept-Encoding": "identity", "User-Agent": "opencode-mcp"}
        if password is not None:
            self._headers["Authorization"] = aiohttp.encode_basic_auth(username, password)
        self._opened: aiohttp.ClientSession | None = None
        self.used_at: dict[str, float] = {}  #: folders that were asked about, and when last

    async def __aenter__(self) -> Self:
        self._opened = aiohttp.ClientSession(
            # No limit of connections: the event stream and slow reads must not starve an abort.
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._opened is not None:
            await self._opened.close()

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            message = "the client is used outside its `async with`"
            raise RuntimeError(message)
        return self._opened

    async def read(self, call: Call, shape: TypeAdapter[T], *, timeout_s: float | None) -> T:
        """Make the call and validate its JSON. Raises as `send`, and OpencodeProtocolError."""
        return decode(call, await self.send(call, timeout_s=timeout_s), shape)

    async def send(self, call: Call, *, timeout_s: float | None) -> Answer:
        """Make the call, again where its kind allows, within min(limit_s, timeout_s) in all.

        Raises OpencodeError; with `outcome_unknown` where a change may have taken effect.
        """
        budget_s = self._limit_s if timeout_s is None else min(self._limit_s, timeout_s)
        if folder := call.query.get("directory"):
            self.used_at[folder] = self._clock.monotonic()
        deadline = self._clock.monotonic() + budget_s
        try:
            async with asyncio.timeout(budget_s):
                return await self._try_again_while_worth_it(call, deadline)
        except OpencodeError:  # before TimeoutError: some of ours are that too
            raise
        except TimeoutError as error:
            raise call.error(
                OpencodeTimeoutError,
                f"no answer within {budget_s:g} s",
                outcome_unknown=call.may_change,
            ) from error

    async def _try_again_while_worth_it(self, call: Call, deadline: float) -> Answer:
        # The first try is made without tenacity, which costs a third of a whole request
        # (measured) and is needed once in a thousand; it takes over with the first failure.
        try:
            return await self._try(call, deadline)
        except OpencodeError as error:
            failures = [error]

        async def one_try() -> Answer:
            if failures:
                raise failures.pop()
            return await self._try(call, deadline)

        return await self._retrying(call, deadline)(one_try)

    def _retrying(self, call: Call, deadline: float) -> tenacity.AsyncRetrying:
        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            floor_s = error.retry_after_s if isinstance(error, OpencodeError) else None
            return max(_BACKOFF(state), floor_s or 0.0)

        def stop(state: tenacity.RetryCallState) -> bool:
            too_late = self._clock.monotonic() + state.upcoming_sleep >= deadline
            return too_late or state.attempt_number >= _MAX_TRIES

        return tenacity.AsyncRetrying(
            sleep=self._clock.sleep,
            retry=_retry_submission if call.kind is CallKind.SUBMISSION else _retry_repeatable,
            wait=wait,
            stop=stop,
            before_sleep=partial(_tell_retry, call),
            reraise=True,
        )

    async def _try(self, call: Call, deadline: float) -> Answer:
        with measured(call, self._clock, deadline):
            return await self._ask(call, deadline)

    async def _ask(self, call: Call, deadline: float) -> Answer:
        left_s = max(deadline - self._clock.monotonic(), 0.001)
        try:
            async with self._session.request(
                call.method,
                self._url(call),
                # as a file it is written piece by piece: a prompt may have megabytes, and nothing
                # else of ours must wait while such a one leaves
                data=None if call.body is None else io.BytesIO(call.body),
                headers=None if call.body is None else {"Content-Type": "application/json"},
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=left_s * _CONNECT_SHARE),
                allow_redirects=False,
            ) as response:
                await self._check(call, response)
                body = await _body(call, response)
                return Answer(body, response.headers.get("X-Next-Cursor"))
        except OpencodeError:  # before OSError: some of ours are that too
            raise
        except (aiohttp.ClientError, OSError) as error:
            raise _broken(call, error) from error

    def _url(self, call: Call) -> URL:
        query = f"?{urlencode(call.query, quote_via=quote)}" if call.query else ""
        # encoded=True: yarl would otherwise unquote and resolve what `segment` has quoted.
        return URL(f"{self.base_url}{call.path}{query}", encoded=True)

    async def _check(self, call: Call, response: aiohttp.ClientResponse) -> None:
        """Raise unless the answer has the status and the type that were asked for."""
        is_right_type = call.status == 204 or response.content_type == call.content_type  # noqa: PLR2004
        if response.status == call.status and is_right_type:
            return
        tag = ""
        if response.status >= 400 and response.content_type == "application/json":  # noqa: PLR2004
            tag = error_tag(await _at_most(response, _ERROR_MAX_BYTES) or b"")
        verdict = refusal(response.status, tag)
        raise call.error(
            verdict.kind,
            verdict.text,
            outcome_unknown=call.may_change and verdict.may_have_acted,
            status=response.status,
            retry_after_s=retry_after_s(response.headers.get("Retry-After"), self._clock.now()),
        )

    @asynccontextmanager
    async def stream(self, path: str, *, silence_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open an event stream and give its chunks as they come, without a limit in total.

        Raises OpencodeError when it cannot be opened, breaks, or sends no byte for `silence_s`.
        """
        call = Call(CallKind.READ, "GET", path, content_type="text/event-stream")
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=silence_s, sock_read=silence_s)
        try:
            async with self._session.get(
                self._url(call),
                headers={"Accept": "text/event-stream"},
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                await self._check(call, response)
                yield gathered(
                    response.content.iter_any(), lambda: _transport(response), self._clock
                )
        except aiohttp.ClientError as error:
            raise _broken(call, error) from error


def _transport(response: aiohttp.ClientResponse) -> asyncio.Transport | None:
    return response.connection.transport if response.connection else None


async def _body(call: Call, response: aiohttp.ClientResponse) -> bytes:
    body = await _at_most(response, call.max_bytes)
    if body is None:
        text = f"the answer is larger than {call.max_bytes} bytes"
        raise call.error(ResponseTooLargeError, text, outcome_unknown=call.may_change)
    return body


async def _at_most(response: aiohttp.ClientResponse, max_bytes: int) -> bytes | None:
    """Read the body; None, without reading on, once it is larger than `max_bytes`."""
    declared = response.content_length
    if declared is not None and declared > max_bytes:
        return None
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():  # counts what was unpacked, if anything was
        size += len(chunk)
        if size > max_bytes:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _broken(call: Call, error: aiohttp.ClientError | OSError) -> OpencodeError:
    """Say in our words what aiohttp met; order is meaning, its classes overlap."""
    unknown = call.may_change
    match error:
        case aiohttp.ClientConnectorError():
            return call.error(OpencodeUnavailableError, "cannot connect")
        case aiohttp.ConnectionTimeoutError():
            return call.error(OpencodeTimeoutError, "no connection in time")
        case TimeoutError():
            return call.error(OpencodeTimeoutError, "silent for too long", outcome_unknown=unknown)
        case aiohttp.ClientResponseError():
            text = "the answer is not HTTP as we know it"
            return call.error(OpencodeProtocolError, text, outcome_unknown=unknown)
        case _:  # an idle connection that the server just closed ends here too
            text = "the connection broke"
            return call.error(OpencodeUnavailableError, text, outcome_unknown=unknown)


def _is_repeatable(error: BaseException) -> bool:
    return isinstance(
        error, OpencodeUnavailableError | OpencodeOverloadedError | OpencodeFailedError
    )


def _is_unsent(error: BaseException) -> bool:
    return isinstance(error.__cause__, aiohttp.ClientConnectorError)


_retry_repeatable = tenacity.retry_if_exception(_is_repeatable)
_retry_submission = tenacity.retry_if_exception(_is_unsent)


def _tell_retry(call: Call, state: tenacity.RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    request_repeated(call.kind.name.lower(), call.route)
    pause_ms = round(state.upcoming_sleep * 1000)
    tell(log, Event.REQUEST_REPEATED, route=call.route, pause_ms=pause_ms, why=str(error))

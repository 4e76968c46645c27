"""Bad answers, on the wire: what each fault looks like to a client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from tests.twin import shapes
from tests.twin.faults import Body, Drip, Reset, Status, Truncate

if TYPE_CHECKING:
    from tests.twin.faults import Fault


async def answer_badly(
    fault: Fault, http: web.Request, done: web.StreamResponse | None
) -> web.StreamResponse:
    """Answer as the fault wants it; `done` is the good answer, if the effect is there."""
    match fault:
        case Status(code, retry_after):
            return _refusal(code, retry_after)
        case Body(content, content_type):
            return web.Response(body=content, headers={"Content-Type": content_type})
        case Drip(pause_s):
            return await _send_slowly(http, _body_of(done), pause_s)
        case Truncate():
            return await _send_half(http, _body_of(done))
        case Reset():
            _break(http)
    return done or web.Response()


async def say_nothing(http: web.Request, released: asyncio.Event) -> web.StreamResponse:
    """Accept an event stream and send not a byte of it."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(http)
    await released.wait()
    return response


def _refusal(code: int, retry_after: str | None) -> web.Response:
    said = shapes.error("UnknownError", f"planned {code}")
    headers = None if retry_after is None else {"Retry-After": retry_after}
    return shapes.answer(said, status=code, headers=headers)


def _body_of(response: web.StreamResponse | None) -> bytes:
    body = response.body if isinstance(response, web.Response) else None
    return body if isinstance(body, bytes) else b""


async def _send_slowly(http: web.Request, body: bytes, pause_s: float) -> web.StreamResponse:
    response = await _begin(http, len(body))
    for index in range(len(body)):
        await response.write(body[index : index + 1])
        await asyncio.sleep(pause_s)
    return response


async def _send_half(http: web.Request, body: bytes) -> web.StreamResponse:
    response = await _begin(http, len(body) + 1)  # even an empty body is cut
    await response.write(body[: len(body) // 2])
    _break(http)
    return response


async def _begin(http: web.Request, length: int) -> web.StreamResponse:
    headers = {"Content-Type": "application/json", "Content-Length": str(length)}
    response = web.StreamResponse(headers=headers)
    await response.prepare(http)
    return response


def _break(http: web.Request) -> None:
    if http.transport is not None:
        http.transport.abort()

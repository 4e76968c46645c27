"""A flood of streamed tokens is read in gulps; a stream that goes its way is read as it comes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from opencode_mcp.clock import Clock
from opencode_mcp.opencode.client import OpencodeClient
from opencode_mcp.opencode.gathering import gathered
from tests.support.polling import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.opencode.fake_server import FakeServer

#: more than the burst that is taken as it comes
_MANY = 120
_CHUNK = b"data: x\n\n"
_END = b"data: end\n\n"


class Stopped(Clock):
    """A clock on which each look takes `step_s`, and who sleeps is let go by the test."""

    def __init__(self, step_s: float) -> None:
        self.sleeping = asyncio.Event()
        self.go_on = asyncio.Event()
        self._step_s = step_s
        self._now = 0.0

    def monotonic(self) -> float:
        self._now += self._step_s
        return self._now

    async def sleep(self, seconds: float) -> None:
        assert seconds < 0.1  # what the end of a turn may be heard too late
        self.sleeping.set()
        await self.go_on.wait()


class Reader:
    """Reads a stream and keeps its chunks."""

    def __init__(self, server: FakeServer, clock: Stopped) -> None:
        self.chunks: list[bytes] = []
        self.task: asyncio.Task[None]
        self._server = server
        self._clock = clock
        self._came = asyncio.Event()

    @property
    def all(self) -> bytes:
        return b"".join(self.chunks)

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self._read())
        self.stream = await self._server.streams.get()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})

    async def take_one_by_one(self, count: int) -> None:
        """Send chunk after chunk, each after the one before was read, until the reader waits."""
        held_back = asyncio.create_task(self._clock.sleeping.wait())
        for _ in range(count):
            if held_back.done():
                return
            self._came.clear()
            self.stream.raw(_CHUNK)
            came = asyncio.create_task(self._came.wait())
            await asyncio.wait({came, held_back}, return_when=asyncio.FIRST_COMPLETED)
            came.cancel()
        held_back.cancel()

    async def _read(self) -> None:
        client = OpencodeClient(
            self._server.url,
            username="opencode",
            password="pw",
            request_timeout_s=5,
            clock=self._clock,
        )
        async with client, client.stream_events(silence_s=5) as chunks:
            async for chunk in chunks:
                self.chunks.append(chunk)
                self._came.set()


async def test_in_a_flood_what_comes_gathers_and_is_read_at_once(server: FakeServer) -> None:
    clock = Stopped(step_s=0.0)
    async with Reader(server, clock) as reader:
        await reader.take_one_by_one(_MANY)
        assert clock.sleeping.is_set()
        taken = len(reader.chunks)
        assert taken > 50  # a short turn is not held back
        for _ in range(_MANY):
            reader.stream.raw(_CHUNK)
            await asyncio.sleep(0)
        assert len(reader.chunks) == taken
        clock.go_on.set()
        reader.stream.raw(_END)

        async def all_came() -> bool:
            return reader.all.endswith(_END)

        await eventually(all_came, what="all that was sent is read")
        assert len(reader.chunks) - taken <= 3  # not one wake for each
        assert reader.all.count(_CHUNK) >= taken - 1 + _MANY


async def test_a_stream_that_takes_its_time_is_never_held_back(server: FakeServer) -> None:
    clock = Stopped(step_s=0.1)
    async with Reader(server, clock) as reader:
        await reader.take_one_by_one(_MANY)
        assert not clock.sleeping.is_set()
        assert reader.all.count(_CHUNK) == _MANY


async def test_what_came_before_a_stream_ended_is_read_although_it_was_held_back(
    server: FakeServer,
) -> None:
    clock = Stopped(step_s=0.0)
    async with Reader(server, clock) as reader:
        await reader.take_one_by_one(_MANY)
        reader.stream.raw(_END)
        reader.stream.end()
        clock.go_on.set()
        await asyncio.wait_for(reader.task, 5)
        assert reader.all.endswith(_END)


class Held(asyncio.ReadTransport):
    """A transport that tells whether it reads."""

    reads = True

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True


async def test_it_is_the_transport_that_is_held_back_and_it_is_let_go_again() -> None:
    """Were it only the reader, each token would still wake the loop."""
    transport, clock = Held(), Stopped(step_s=0.0)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield _CHUNK

    async def read() -> None:
        async for _ in gathered(endless(), lambda: transport, clock):
            pass

    reading = asyncio.create_task(read())
    await clock.sleeping.wait()
    assert not transport.reads
    reading.cancel()
    await asyncio.wait({reading})
    assert transport.reads

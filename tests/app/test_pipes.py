"""stdin and stdout as the MCP library gets them, on pipes of the test's own."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING

import pytest

from opencode_mcp.app import pipes as module
from opencode_mcp.app.pipes import Pipes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opencode_mcp.cli.scripted_model import Json

WITHIN_S = 10.0
#: so long nothing must happen that must not
A_WHILE_S = 0.3


class Ends:
    """The pipes, the client's ends of them, and how often the source was seen to end."""

    def __init__(self) -> None:
        source, self.client_out = os.pipe()
        self.client_in, sink = os.pipe()
        self.ended = 0
        self._mine = [source, sink]
        self.pipes = Pipes(source, sink, on_end=self._note)

    def _note(self) -> None:
        self.ended += 1

    def send(self, *messages: Json, end: bytes = b"\n") -> None:
        """Say something to the server."""
        lines = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
        os.write(self.client_out, b"\n".join(lines) + end)

    def leave(self) -> None:
        """End the input, as a client does that goes."""
        os.close(self.client_out)
        self.client_out = -1

    def read(self) -> asyncio.Task[str]:
        """Begin to read one line, as the library does: in a thread."""
        return asyncio.create_task(asyncio.to_thread(self.pipes.stdin.readline))

    def say(self, message: Json) -> None:
        """Write as the library does."""
        self.pipes.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.pipes.stdout.flush()

    def close(self) -> None:
        """Close all that is open still."""
        self.pipes.end()
        for descriptor in (self.client_out, self.client_in, *self._mine):
            if descriptor >= 0:
                os.close(descriptor)


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Give pipes, and close them."""
    made = Ends()
    yield made
    made.close()


def ask(identity: int | str, method: str = "ping") -> Json:
    """Return a request."""
    return {"id": identity, "method": method}


async def over(reading: asyncio.Task[str]) -> None:
    """Wait until the input has ended for the library."""
    async with asyncio.timeout(WITHIN_S):
        assert await reading == ""


async def goes_on(reading: asyncio.Task[str]) -> None:
    """Fail if the input ends within a while."""
    await asyncio.wait({reading}, timeout=A_WHILE_S)
    assert not reading.done()


@pytest.mark.parametrize(
    "answer", [{"result": {}}, {"error": {"code": -1, "message": "no"}}], ids=["result", "error"]
)
@pytest.mark.parametrize("identity", [7, "seven"])
async def test_the_end_waits_for_the_answer(ends: Ends, identity: int | str, answer: Json) -> None:
    ends.send(ask(identity))
    ends.leave()
    first = await ends.read()
    reading = ends.read()
    await goes_on(reading)
    ends.say({"method": "notifications/progress", "params": {}})
    ends.say({"id": identity, "method": "elicitation/create", "params": {}})
    ends.say({"id": 99, "result": {}})
    await goes_on(reading)
    ends.say({"id": identity, **answer})

    assert json.loads(first)["id"] == identity
    assert ends.ended == 1
    await over(reading)


async def test_without_a_request_it_ends_at_once(ends: Ends) -> None:
    ends.send({"method": "notifications/initialized"}, {"id": 3, "result": {}})
    os.write(ends.client_out, b'{"id": 5}\nnonsense\n')
    ends.leave()
    lines = [await ends.read() for _ in range(4)]

    assert all(lines)
    await over(ends.read())


async def test_a_last_line_without_its_end_is_a_line(ends: Ends) -> None:
    ends.send(ask(7), end=b"")
    ends.leave()
    first = await ends.read()
    reading = ends.read()
    await goes_on(reading)
    ends.say({"id": 7, "result": {}})

    assert json.loads(first)["id"] == 7
    await over(reading)


async def test_a_cancelled_request_is_not_waited_for(ends: Ends) -> None:
    cancel = {"method": "notifications/cancelled", "params": {"requestId": 7}}
    ends.send(ask(7), cancel)
    ends.leave()
    assert await ends.read()
    assert await ends.read()

    await over(ends.read())


async def test_a_request_that_is_never_answered_holds_the_end_for_a_bounded_time(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITTEN_BY_S", 2 * A_WHILE_S)
    ends.send(ask(7))
    ends.leave()
    assert await ends.read()
    reading = ends.read()

    await goes_on(reading)
    await over(reading)


async def test_told_to_end_it_first_gives_what_has_come(ends: Ends) -> None:
    """A signal: the client has not closed anything, and may still be answered."""
    reading = ends.read()
    ends.send(ask(7))
    assert await reading
    ends.send(ask(8))
    ends.pipes.end()
    assert await ends.read()
    reading = ends.read()
    ends.say({"id": 7, "result": {}})
    await goes_on(reading)
    ends.send(ask(9))
    assert await reading
    ends.say({"id": 8, "result": {}})
    ends.say({"id": 9, "result": {}})

    await over(ends.read())
    assert not ends.ended


async def test_told_to_end_it_frees_the_thread_that_reads(ends: Ends) -> None:
    reading = ends.read()
    await goes_on(reading)
    ends.pipes.end()

    await over(reading)


async def test_a_client_that_is_gone_is_not_waited_for(ends: Ends) -> None:
    ends.send(ask(7))
    assert await ends.read()
    os.close(ends.client_in)
    ends.client_in = -1
    ends.say({"method": "notifications/progress", "params": {}})

    await over(ends.read())


async def test_long_lines_come_whole(ends: Ends) -> None:
    message = {**ask(7), "params": {"text": "x" * 1_000_000}}
    reading = ends.read()
    await asyncio.to_thread(ends.send, message)
    answer = {"id": 7, "result": {"text": "y" * 1_000_000}}
    saying = asyncio.create_task(asyncio.to_thread(ends.say, answer))
    got = b""
    while not got.endswith(b"\n"):
        got += await asyncio.to_thread(os.read, ends.client_in, 65_536)
    await saying
    ends.leave()

    assert json.loads(await reading) == {"jsonrpc": "2.0", **message}
    assert json.loads(got) == {"jsonrpc": "2.0", **answer}
    await over(ends.read())
